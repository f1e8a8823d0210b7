package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bucketbrigade/relay/cmd/relay/picture"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/store"
)

// leaseRelease frees the lease of a relay that is gone.
type leaseRelease struct {
	app     *app
	bucket  int
	consent consent
	output  format
}

func newLeaseRelease(a *app) *cobra.Command {
	c := &leaseRelease{app: a}
	return a.command(spec{
		use:   "release --bucket N",
		short: "Frees the lease of a bucket whose owner is gone",
		long: "Frees the lease of a bucket whose owner is gone, so that a relay claims it in its next round: a\n" +
			"lease that has lapsed, or one whose owner has stopped, or was not seen for a lease duration. Any\n" +
			"other is refused: stop its owner instead, which hands over by itself. The lease is freed only if it\n" +
			"still is the one that was read. Relays claim a lapsed lease without this command; what it is for is\n" +
			"an owner that ended and left leases which are still to run.",
		example: "  relay lease release --table orders --bucket 3",
		groups:  settings.Table | settings.Leases,
		arguments: []settings.Argument{
			{Name: "bucket", Value: settings.Index(&c.bucket), Doc: "bucket, from 0", Required: "say which bucket"},
			a.timeoutArgument(),
			outputArgument(&c.output),
		},
		consent: &c.consent,
		run:     c.run,
	})
}

func (c *leaseRelease) run(ctx context.Context, loaded *settings.Loader) error {
	s := &loaded.Settings
	if err := checkBucket(s, c.bucket); err != nil {
		return err
	}
	client, f, err := c.app.readFleet(ctx, s)
	if err != nil {
		return err
	}
	d, err := c.change(f)
	if err != nil {
		return err
	}
	return advised(c.app.carryOut(ctx, client, d, c.consent, c.output), s)
}

// change frees the lease, unless its owner lives (protocol.md section 7). A pause stays
// on it.
func (c *leaseRelease) change(f picture.Fleet) (change, error) {
	lease := f.Leases[c.bucket]
	var d change
	switch {
	case lease.Unreadable:
		return d, fmt.Errorf("the lease of bucket %d cannot be read, and is nobody's to free: repair the item: %w", c.bucket, unreadableFault(f))
	case lease.Owner == "" || lease.Expires == 0:
		return d, nil
	case !lease.Held:
		d.facts = append(d.facts, fmt.Sprintf("the lease of bucket %d has lapsed %s; its owner %s %s",
			c.bucket, expiryText(f, lease), legible(lease.Owner), holderText(lease.Holder)))
	case lease.Holder == picture.Active:
		owner, _ := f.Relay(lease.Owner)
		return d, fmt.Errorf("bucket %d is owned by relay %s, which was seen %s ago and holds it: stop that relay, and it hands over by itself, or use relay pause",
			c.bucket, legible(lease.Owner), agoText(f, owner.LastSeen))
	default:
		d.facts = append(d.facts,
			fmt.Sprintf("the lease of bucket %d expires %s; its owner %s %s",
				c.bucket, expiryText(f, lease), legible(lease.Owner), holderText(lease.Holder)),
			"make sure that its process has ended: one that still works would publish beside the next owner")
	}
	d.question = fmt.Sprintf("free the lease of bucket %d, held by %s", c.bucket, legible(lease.Owner))
	d.requests = []store.Request{store.Release{Bucket: c.bucket, Relay: lease.Owner, Seen: lease.Expires, Now: f.Now()}}
	return d, nil
}
