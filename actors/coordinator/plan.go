package coordinator

import "slices"

// LeaseState is one bucket's lease as the plan sees it.
type LeaseState struct {
	Owner   string // "": no owner
	Expired bool
}

// Plan is one relay's part of the round's plan. All lists ascend.
type Plan struct {
	Keep, Release, Claim []int
	// StandbyRank is -1 with a share or anything owned, else our position among
	// the relays without a share, from 0.
	StandbyRank int
}

// MakePlan divides the buckets (leases[b] is bucket b's) among the active relays,
// ourselves included, and returns our part. It is a pure function: relays that
// read the same state make disjoint plans. Ids are compared byte-wise, and
// repeated ones count once. (protocol.md section 4)
func MakePlan(active []string, self string, leases []LeaseState) Plan {
	relays := slices.Clone(active)
	relays = append(relays, self)
	slices.Sort(relays)
	relays = slices.Compact(relays)
	me, _ := slices.BinarySearch(relays, self)

	d := divide(relays, me, leases)
	keep, release := d.keepAndRelease(me)
	plan := Plan{Keep: keep, Release: release, Claim: d.claims(me), StandbyRank: -1}
	if d.shares[me] == 0 && len(keep)+len(release) == 0 {
		plan.StandbyRank = 0
		for _, share := range d.shares[:me] {
			if share == 0 {
				plan.StandbyRank++
			}
		}
	}
	return plan
}

// nobody marks a free bucket, and somebody a bucket held by a relay that is not
// active.
const (
	nobody   = -1
	somebody = -2
)

// division is the state of one round from every relay's point of view.
type division struct {
	holders []int // by bucket: index of the relay, nobody, somebody
	held    []int // by relay
	shares  []int // by relay
	starts  []int // by relay: the first bucket of its range; one more at the end
}

func divide(relays []string, me int, leases []LeaseState) division {
	d := division{
		holders: make([]int, len(leases)),
		held:    make([]int, len(relays)),
		starts:  make([]int, len(relays)+1),
	}
	for b, lease := range leases {
		d.holders[b] = holder(relays, me, lease)
		if d.holders[b] >= 0 {
			d.held[d.holders[b]]++
		}
	}
	d.shares = shares(len(leases), d.held)
	for r, share := range d.shares {
		d.starts[r+1] = d.starts[r] + share
	}
	return d
}

// holder is who holds a bucket. Our own lapsed lease is still ours.
func holder(relays []string, me int, lease LeaseState) int {
	if lease.Owner == "" || lease.Expired && lease.Owner != relays[me] {
		return nobody
	}
	if r, found := slices.BinarySearch(relays, lease.Owner); found {
		return r
	}
	return somebody
}

// shares gives each relay the floor, and one more of the remainder to those that
// hold more than the floor already, then to the others, in id order each: where
// the split leaves a choice, nothing moves.
func shares(buckets int, held []int) []int {
	floor, remainder := buckets/len(held), buckets%len(held)
	result := make([]int, len(held))
	for r := range result {
		result[r] = floor
	}
	for _, holdsMore := range []bool{true, false} {
		for r := range result {
			if remainder > 0 && held[r] > floor == holdsMore {
				result[r]++
				remainder--
			}
		}
	}
	return result
}

func (d division) inRange(r, bucket int) bool {
	return bucket >= d.starts[r] && bucket < d.starts[r+1]
}

// keepAndRelease keeps up to our share of what we hold, buckets of our range
// first.
func (d division) keepAndRelease(me int) (keep, release []int) {
	var inside, outside []int
	for b, h := range d.holders {
		switch {
		case h != me:
		case d.inRange(me, b):
			inside = append(inside, b)
		default:
			outside = append(outside, b)
		}
	}
	held := append(inside, outside...)
	kept := min(len(held), d.shares[me])
	keep, release = held[:kept:kept], held[kept:]
	slices.Sort(keep)
	slices.Sort(release)
	return keep, release
}

// claims computes the claims of every relay and returns ours: in id order, each
// relay that is short takes the free buckets of its own range; then, in id order
// again, relays that are still short take what is left, ascending.
func (d division) claims(me int) []int {
	short := make([]int, len(d.shares))
	for r, share := range d.shares {
		short[r] = max(0, share-d.held[r])
	}
	var ours, left []int
	take := func(r, bucket int) {
		short[r]--
		if r == me {
			ours = append(ours, bucket)
		}
	}
	r := 0
	for b, h := range d.holders {
		for r < len(d.shares)-1 && b >= d.starts[r+1] {
			r++
		}
		switch {
		case h != nobody:
		case short[r] > 0 && d.inRange(r, b):
			take(r, b)
		default:
			left = append(left, b)
		}
	}
	r = 0
	for _, b := range left {
		for r < len(short) && short[r] == 0 {
			r++
		}
		if r == len(short) {
			break
		}
		take(r, b)
	}
	slices.Sort(ours)
	return ours
}
