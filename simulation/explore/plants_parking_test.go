package explore

import (
	"reflect"
	"strings"
	"testing"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/actors/bucket"
	"github.com/bucketbrigade/relay/store"
)

// replaced replaces a part of all conditions.
func replaced(part, by string) func(update, condition string) string {
	return func(_, condition string) string { return strings.ReplaceAll(condition, part, by) }
}

// parkedOf is what a bucket's core knows of what is set aside.
func parkedOf(core reflect.Value) reflect.Value { return open(core.FieldByName("parked")) }

// poking changes a field of that before each step, or after it.
func pokingBefore(poke func(core reflect.Value, message any)) plant {
	return plant{step: func(core reflect.Value, message any) func() {
		poke(core, message)
		return nil
	}}
}

func pokingAfter(poke func(core reflect.Value, message any)) plant {
	return plant{step: func(core reflect.Value, message any) func() {
		return func() { poke(core, message) }
	}}
}

// begins tells whether a message begins a tenure.
func begins(message any) bool {
	switch message.(type) {
	case bucket.Claim, bucket.Resume:
		return true
	}
	return false
}

// answers tells whether a message is the answer to a request of a type.
func answers[R store.Request](message any) bool {
	replied, ok := message.(actors.Replied)
	if !ok {
		return false
	}
	_, ok = replied.Request.(R)
	return ok
}

// letPass lets the rows of a key pass while its retry is asked for.
func letPass(core reflect.Value, message any) func() {
	if !answers[store.Fetch](message) && !answers[store.Probe](message) {
		return nil
	}
	keys := open(parkedOf(core).FieldByName("keys"))
	all := reflect.ValueOf(keys.Interface())
	left := reflect.MakeSlice(keys.Type(), 0, all.Len())
	for i := range all.Len() {
		if one := all.Index(i); one.FieldByName("RetryAt").IsZero() {
			left = reflect.Append(left, one)
		}
	}
	keys.Set(left)
	return func() { keys.Set(all) }
}

// asidePlantings are bugs in the transactions that set aside, and end that.
func asidePlantings() []planting {
	return []planting{
		{
			name: "lease check without the claim", breaks: "what an earlier tenure sent is refused (M-01)", caught: "I-10",
			within: oneRelay(0, 0).withFaults(2, Held, Failed),
			plant:  plant{condition: replaced(" AND #claim = :claim", "")},
		},
		{
			name: "rows move before their marker is answered", breaks: "no row is set aside without a marker (M-08)", caught: "I-38",
			within: oneRelay(1, 0),
			plant: plant{
				early:     func(r store.Request) bool { _, marks := r.(store.Mark); return marks },
				condition: replaced("#parked = :known", "attribute_exists(#parked) OR attribute_not_exists(#parked)"),
			},
		},
		{
			name: "a marker goes whatever was asked for meanwhile", breaks: "a wish for a retry is served (M-05)", caught: "I-37",
			within: oneRelay(0, 2, Retry),
			plant: plant{condition: func(update, condition string) string {
				if update == "" && strings.HasPrefix(condition, "#parked = :parked AND ") {
					return "attribute_exists(#parked)"
				}
				return condition
			}},
		},
		{
			name: "a marker replaces another", breaks: "a marker that is there already is left alone (M-05)", caught: "I-37",
			within: oneRelay(0, 2, SetKeyAside, Retry),
			plant: plant{condition: func(update, condition string) string {
				if update == "" && condition == "attribute_not_exists(#pk)" {
					return "attribute_exists(#pk) OR attribute_not_exists(#pk)"
				}
				return condition
			}},
		},
		{
			name: "a rejected retry ends whatever was asked for meanwhile", breaks: "a wish for a retry is served (M-05)", caught: "I-37",
			within: oneRelay(0, 2, Retry),
			plant:  weaker("REMOVE #retry", "attribute_exists(#parked)"),
		},
		{
			name: "a retry lets newer rows pass", breaks: "newer rows wait until a key's retry has ended", caught: "I-4",
			within: oneRelay(1, 1, Retry).withFaults(1, Unsent),
			plant:  plant{step: letPass},
		},
		{
			name: "a retry ends before its rows", breaks: "a key's marker goes only when nothing is left of it", caught: "I-38",
			within: oneRelay(1, 1, Retry),
			plant: plant{reply: func(r store.Request, reply store.Reply) store.Reply {
				if page, fetched := reply.Result.(store.Fetched); fetched && len(page.Rows) > 1 {
					if _, aside := r.(store.FetchParked); aside {
						reply.Result = store.Fetched{Rows: page.Rows[:1]}
					}
				}
				return reply
			}},
		},
		{
			name: "a repeated transaction has a new token", breaks: "a transaction takes effect once", caught: "I-10",
			within: oneRelay(0, 1, Retry).withFaults(1, Held),
			plant:  plant{forgetful: true},
		},
		{
			name: "a row is moved that is not there", breaks: "only what is among the messages is set aside", caught: "I-37",
			within: oneRelay(0, 1, SetKeyAside).withFaults(2, Held, Failed),
			plant: plant{condition: func(update, condition string) string {
				if update == "" && condition == "attribute_exists(#pk)" {
					return "attribute_exists(#pk) OR attribute_not_exists(#pk)"
				}
				return condition
			}},
		},
	}
}

// tenurePlantings are bugs in how a tenure begins, and in what it hears.
func tenurePlantings() []planting {
	return []planting{
		{
			name: "a tenure begins without the markers", breaks: "what is set aside is read before the first row", caught: "I-4",
			within: oneRelay(1, 0).withFaults(1, Failed),
			plant: pokingBefore(func(core reflect.Value, message any) {
				if begins(message) {
					parked := parkedOf(core)
					open(parked.FieldByName("known")).SetBool(true)
					open(parked.FieldByName("taken")).SetBool(true)
				}
			}),
		},
		{
			name: "the bell counts from after the markers were read", breaks: "a bell during the read is heard (M-11)", caught: "I-10",
			within: oneRelay(0, 1, SetKeyAside).withFaults(2, Throttled, SlowAnswer),
			plant: pokingAfter(func(core reflect.Value, message any) {
				lease := open(open(core.FieldByName("lease")).FieldByName("read")).Interface().(*store.Lease)
				if parked := parkedOf(core); answers[store.ReadMarkers](message) && lease != nil && parked.FieldByName("known").Bool() {
					open(parked.FieldByName("heard")).SetInt(int64(lease.Attention))
				}
			}),
		},
		{
			name: "a retry does not wait for the tenure before", breaks: "a retry sees each row of its key, and each wish (M-08)", caught: "I-37",
			within: aTenureDies([]Row{{Key: "a", Rejected: true, Waiting: true}, {Key: "a", Waiting: true}}, Retry),
			plant: pokingAfter(func(core reflect.Value, message any) {
				open(core.FieldByName("cleanly")).SetBool(true)
			}),
		},
		{
			name: "the markers are read once", breaks: "a marker of the tenure before is found (M-08)", caught: "I-10",
			within: aTenureDies(aRejectedRow(0)),
			plant: pokingAfter(func(core reflect.Value, message any) {
				open(parkedOf(core).FieldByName("early")).SetBool(false)
			}),
		},
		{
			name: "an elder process is not waited for", breaks: "rows are moved when an older process of the id has certainly ended (M-09)", caught: "I-4",
			within: twoOfOneID(Options{Rows: []Row{{Key: "a", Waiting: true}, {Key: "a"}}, Acts: 1, ActKinds: []Act{SetKeyAside}}),
			plant: pokingAfter(func(core reflect.Value, _ any) {
				open(core.FieldByName("elderLapses")).SetZero()
			}),
		},
		{
			name: "a tenure goes on after a refused mark", breaks: "a late mark is refused", caught: "I-10",
			within: oneRelay(0, 2, Retry, SetKeyAside).withFaults(1, Held),
			plant: pokingBefore(func(core reflect.Value, message any) {
				if answers[store.Mark](message) {
					open(core.FieldByName("repeating")).SetBool(false)
				}
			}),
		},
	}
}

// Each planted bug is found by the search that is said to find it, and nothing is
// found without it.
func TestPlantedBugsOfParking(t *testing.T) {
	testPlantings(t, asidePlantings())
	testPlantings(t, tenurePlantings())
}
