package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/store"
)

// leaseList shows the leases as they stand. It reads only.
type leaseList struct {
	app    *app
	output format
}

func newLeaseList(a *app) *cobra.Command {
	c := &leaseList{app: a}
	return a.command(spec{
		use:   "list",
		short: "Shows the lease of every bucket: whose, until when, and what its owner is doing",
		long: "Shows the lease of every bucket as the table has it: owned, free, or lapsed, which means that its\n" +
			"owner has not renewed it in time, and that a relay will claim it in its next round. An owner is\n" +
			"active, stopped when it has said so, or silent when it was not seen for a lease duration. One\n" +
			"strongly consistent read of the coordination partition, whatever relays are up.",
		example:   "  relay lease list --table orders",
		groups:    settings.Table | settings.Leases,
		arguments: []settings.Argument{outputArgument(&c.output)},
		run:       c.run,
	})
}

// leasesDocument is the JSON of the command.
type leasesDocument struct {
	Table       string          `json:"table"`
	BucketCount int             `json:"bucketCount"`
	Time        string          `json:"time"` // by which the states are judged
	Leases      []leaseDocument `json:"leases"`
	// Beyond are leases of buckets at or beyond the bucket count: relays leave them alone.
	Beyond     []leaseDocument `json:"beyond"`
	Unreadable []string        `json:"unreadable"`
}

type leaseDocument struct {
	Bucket      int            `json:"bucket"`
	State       leaseState     `json:"state"`
	Owner       *string        `json:"owner"`       // null: nobody
	Incarnation string         `json:"incarnation"` // empty: none, or a peer's
	Claim       int64          `json:"claim"`
	Expires     *string        `json:"expires"`    // null: never claimed
	OwnerState  *relayState    `json:"ownerState"` // null: no owner
	LastSeen    *string        `json:"lastSeen"`   // of the owner; null: it has no record
	Paused      *pauseDocument `json:"paused"`     // null: it is not
}

// pauseDocument is a pause that is on.
type pauseDocument struct {
	Until  *string `json:"until"` // null: until it is resumed
	By     string  `json:"by"`
	Reason string  `json:"reason"`
}

func (c *leaseList) run(ctx context.Context, loaded *settings.Loader) error {
	s := &loaded.Settings
	client, err := c.app.client(ctx, s)
	if err != nil {
		return err
	}
	found, err := c.app.readLeases(ctx, client, s)
	if err != nil {
		return advised(err, s)
	}
	if c.output == formatJSON {
		err = printJSON(c.app.stdout, c.document(s, found))
	} else {
		c.print(s, found)
	}
	return errors.Join(err, found.unreadableFault())
}

// unreadableFault says at the end of a command that some items could not be read.
func (l leases) unreadableFault() error {
	if len(l.unreadable) == 0 {
		return nil
	}
	return fmt.Errorf("%s of the coordination partition cannot be read, the first: %w", counted(len(l.unreadable), "item"), l.unreadable[0])
}

func (c *leaseList) document(s *settings.Settings, found leases) leasesDocument {
	d := leasesDocument{Table: s.Relay.Table, BucketCount: s.Relay.BucketCount, Time: rfc3339(found.now.Time()),
		Leases: []leaseDocument{}, Beyond: []leaseDocument{}, Unreadable: []string{}}
	for _, lease := range found.byBucket {
		d.Leases = append(d.Leases, describeLease(s, found, lease))
	}
	for _, lease := range found.beyond {
		d.Beyond = append(d.Beyond, describeLease(s, found, lease))
	}
	for _, fault := range found.unreadable {
		d.Unreadable = append(d.Unreadable, fault.Error())
	}
	return d
}

func describeLease(s *settings.Settings, found leases, lease store.Lease) leaseDocument {
	d := leaseDocument{Bucket: lease.Bucket, State: found.stateOf(lease), Incarnation: lease.Incarnation, Claim: lease.Claim,
		Expires: timeOrNull(lease.Expires)}
	if lease.Owner != "" {
		state := found.stateOfRelay(lease.Owner, s.Relay.LeaseDuration)
		d.Owner, d.OwnerState, d.LastSeen = &lease.Owner, &state, timeOrNull(found.relays[lease.Owner].LastSeen)
	}
	if found.isPaused(lease) {
		d.Paused = describePauseOf(lease.PausedUntil, lease.PausedBy, lease.PauseReason)
	}
	return d
}

// describePauseOf is a pause as JSON has it; nil for none.
func describePauseOf(until store.Ticks, by, reason string) *pauseDocument {
	if until == 0 {
		return nil
	}
	d := &pauseDocument{By: by, Reason: reason}
	if until < store.NoEnd {
		d.Until = timeOrNull(until)
	}
	return d
}

var leaseColumns = []column{
	{title: "BUCKET", right: true}, {title: "STATE"}, {title: "EXPIRES", right: true}, {title: "CLAIM", right: true},
	{title: "OWNER", elastic: true}, {title: "OWNER IS"}, {title: "SEEN", right: true}, {title: "PAUSED"},
}

func (c *leaseList) print(s *settings.Settings, found leases) {
	if fact := found.clockFact(); fact != "" {
		fmt.Fprintln(c.app.stderr, fact)
	}
	fmt.Fprintf(c.app.stdout, "table %s: %s\n", s.Relay.Table, counted(s.Relay.BucketCount, "bucket"))
	var lines [][]string
	for _, lease := range found.byBucket {
		lines = append(lines, c.line(s, found, lease))
	}
	c.app.printTable(leaseColumns, lines)
	for _, fact := range found.pauseFacts() {
		fmt.Fprintln(c.app.stdout, fact)
	}
	if n := len(found.beyond); n > 0 {
		fmt.Fprintf(c.app.stdout, "and %s of buckets beyond the bucket count, which relays leave alone\n", counted(n, "lease"))
	}
}

// pauseFacts says of each pause that is on who asked for it, and of how many buckets:
// one command pauses many.
func (l leases) pauseFacts() []string {
	var facts []string
	buckets := map[string][]int{}
	for _, lease := range l.byBucket {
		if !l.isPaused(lease) {
			continue
		}
		fact := pauseFact(lease.PausedUntil, lease.PausedBy, lease.PauseReason)
		if buckets[fact] == nil {
			facts = append(facts, fact)
		}
		buckets[fact] = append(buckets[fact], lease.Bucket)
	}
	for i, fact := range facts {
		if of := buckets[fact]; len(of) == 1 {
			facts[i] = fmt.Sprintf("bucket %d is paused %s", of[0], fact)
		} else {
			facts[i] = fmt.Sprintf("%d buckets are paused %s", len(of), fact)
		}
	}
	return facts
}

func (c *leaseList) line(s *settings.Settings, found leases, lease store.Lease) []string {
	expires, claim, owner, is, seen, paused := "-", "-", "-", "-", "-", "-"
	state := found.stateOf(lease)
	switch state {
	case leaseOwned:
		expires = "in " + ageText(lease.Expires.Sub(found.now))
	case leaseLapsed:
		expires = found.age(lease.Expires) + " ago"
	}
	if lease.Claim != 0 {
		claim = strconv.FormatInt(lease.Claim, 10)
	}
	if lease.Owner != "" {
		owner, is = legible(lease.Owner), string(found.stateOfRelay(lease.Owner, s.Relay.LeaseDuration))
		if record, known := found.relays[lease.Owner]; known {
			seen = found.age(record.LastSeen) + " ago"
		}
	}
	if found.isPaused(lease) {
		paused = "yes"
	}
	return []string{strconv.Itoa(lease.Bucket), string(state), expires, claim, owner, is, seen, paused}
}
