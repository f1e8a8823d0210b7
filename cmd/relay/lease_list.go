package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/bucketbrigade/relay/cmd/relay/picture"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
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
		long: "Shows the lease of every bucket in the words of relay status: owned, free, lapsed, which means that\n" +
			"its owner has not renewed it in time, and that a relay will claim it in its next round, paused by an\n" +
			"operator, whoever has it, or unreadable. An owner is active, stopped when it has said so, silent\n" +
			"when it was not seen for a lease duration, or unknown when it has no record. One strongly\n" +
			"consistent read of the coordination partition, whatever relays are up.",
		example:   "  relay lease list --table orders",
		groups:    settings.Table | settings.Leases,
		arguments: []settings.Argument{a.timeoutArgument(), outputArgument(&c.output)},
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
	Bucket      int                 `json:"bucket"`
	State       picture.LeaseState  `json:"state"`
	Owner       *string             `json:"owner"`       // null: nobody
	Incarnation string              `json:"incarnation"` // empty: none, or a peer's
	Claim       int64               `json:"claim"`
	Expires     *string             `json:"expires"`    // null: never claimed
	OwnerState  *picture.RelayState `json:"ownerState"` // null: no owner
	LastSeen    *string             `json:"lastSeen"`   // of the owner; null: it has no record
	Paused      *pauseDocument      `json:"paused"`     // null: it is not
}

func (c *leaseList) run(ctx context.Context, loaded *settings.Loader) error {
	s := &loaded.Settings
	_, f, err := c.app.readFleet(ctx, s)
	if err != nil {
		return err
	}
	if c.output == formatJSON {
		err = printJSON(c.app.stdout, c.document(s, f))
	} else {
		c.print(s, f)
	}
	return errors.Join(err, unreadableFault(f))
}

func (c *leaseList) document(s *settings.Settings, f picture.Fleet) leasesDocument {
	d := leasesDocument{Table: s.Relay.Table, BucketCount: s.Relay.BucketCount, Time: rfc3339(f.At),
		Leases: []leaseDocument{}, Beyond: []leaseDocument{}, Unreadable: []string{}}
	for _, lease := range f.Leases {
		d.Leases = append(d.Leases, describeLease(f, lease))
	}
	for _, lease := range f.Beyond {
		d.Beyond = append(d.Beyond, describeLease(f, lease))
	}
	for _, fault := range f.Unreadable {
		d.Unreadable = append(d.Unreadable, fault.Error())
	}
	return d
}

func describeLease(f picture.Fleet, lease picture.Lease) leaseDocument {
	d := leaseDocument{Bucket: lease.Bucket, State: lease.State, Owner: textOrNull(lease.Owner), Incarnation: lease.Incarnation,
		Claim: lease.Claim, Expires: timeOrNull(lease.Expires), Paused: describeLeasePause(lease)}
	if lease.Owner != "" {
		owner, _ := f.Relay(lease.Owner)
		d.OwnerState, d.LastSeen = &lease.Holder, timeOrNull(owner.LastSeen)
	}
	return d
}

var leaseColumns = []column{
	{title: "BUCKET", right: true}, {title: "STATE"}, {title: "EXPIRES", right: true}, {title: "CLAIM", right: true},
	{title: "OWNER", elastic: true}, {title: "OWNER IS"}, {title: "SEEN", right: true},
}

func (c *leaseList) print(s *settings.Settings, f picture.Fleet) {
	c.app.printFolded(fmt.Sprintf("table %s: %s", s.Relay.Table, counted(s.Relay.BucketCount, "bucket")))
	var lines [][]string
	for _, lease := range f.Leases {
		lines = append(lines, leaseLine(f, lease))
	}
	c.app.printTable(leaseColumns, lines)
	for _, pause := range pausesOf(f.Leases) {
		c.app.printFolded(pause.sentence(""))
	}
	if n := len(f.Beyond); n > 0 {
		fmt.Fprintf(c.app.stdout, "and %s beyond the bucket count, which relays leave alone\n", counted(n, "lease"))
	}
}

func leaseLine(f picture.Fleet, lease picture.Lease) []string {
	claim, owner, is, seen := "-", "-", "-", "-"
	if lease.Claim != 0 {
		claim = strconv.FormatInt(lease.Claim, 10)
	}
	if lease.Owner != "" {
		owner, is = legible(lease.Owner), string(lease.Holder)
		if relay, known := f.Relay(lease.Owner); known {
			seen = seenText(f, relay)
		}
	}
	return []string{strconv.Itoa(lease.Bucket), string(lease.State), expiryText(f, lease), claim, owner, is, seen}
}
