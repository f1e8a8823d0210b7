package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/store"
)

// parkedDiscard deletes one row that is set aside, for good.
type parkedDiscard struct {
	app      *app
	keyID    string
	sequence int64
	bucket   int
	inBucket bool // bucket was given
	consent  consent
	output   format
}

func newParkedDiscard(a *app) *cobra.Command {
	c := &parkedDiscard{app: a}
	return a.command(spec{
		use:   "discard KEYID SEQUENCE",
		short: "Deletes one row that is set aside, for good",
		long: "Deletes one row that is set aside, for good: it will never be delivered, and the rows behind it\n" +
			"stay. Its facts are shown first, among them a retry of the key that is under way: then the row may\n" +
			"be with the broker already. relay parked retry --call-off ends it.",
		example: "  relay parked discard --table orders 5d41402abc4b2a76b9719d911017c592 42",
		groups:  settings.Table,
		arguments: []settings.Argument{
			{Name: "bucket", Value: settings.Index(&c.bucket), Doc: "bucket, when several have a row of that key and number"},
			a.timeoutArgument(),
			outputArgument(&c.output),
		},
		consent: &c.consent,
		check:   c.check,
		run:     c.run,
	})
}

func (c *parkedDiscard) check(positional []string, given func(string) bool) []settings.Fault {
	c.inBucket = given("bucket")
	if len(positional) < 2 {
		return []settings.Fault{{Setting: "KEYID SEQUENCE", Detail: ": which row? relay parked show KEYID shows the rows of a key"}}
	}
	c.keyID = positional[0]
	faults := checkKeyIDs(c.keyID)
	var err error
	if c.sequence, err = settings.ParseSequence(positional[1]); err != nil {
		faults = append(faults, settings.Fault{Setting: "SEQUENCE", Detail: fmt.Sprintf(" %q: %v", positional[1], err)})
	}
	return append(faults, noPositional(positional[2:], given)...)
}

func (c *parkedDiscard) run(ctx context.Context, loaded *settings.Loader) error {
	s := &loaded.Settings
	if err := checkBucket(s, c.bucket); err != nil {
		return err
	}
	client, f, err := c.app.readFleet(ctx, s)
	if err != nil {
		return err
	}
	bucket, row, err := c.find(ctx, client, s)
	if err != nil {
		return advised(err, s)
	}
	found, err := readMarkers(ctx, client, bucket)
	if err != nil {
		return advised(err, s)
	}
	at := f.Now()
	err = c.app.carryOut(ctx, client, change{
		facts:    append(rowFacts(bucket, row, at), c.retryFacts(found.ofBucket(bucket, at))...),
		question: fmt.Sprintf("discard row %d of key %s%s, for good", c.sequence, c.keyID, inBucket(bucket)),
		requests: []store.Request{
			store.DiscardParked{Bucket: bucket, KeyID: c.keyID, Sequence: c.sequence},
			store.Ring{Bucket: bucket, At: at},
		},
	}, c.consent, c.output)
	return advised(err, s)
}

// retryFacts warn of a retry of the row's key.
func (c *parkedDiscard) retryFacts(known retries) []string {
	marker, _ := known.find(c.keyID, "")
	fact := known.fact(marker)
	if fact == "" {
		return nil
	}
	return []string{"the retry of its key is under way, " + fact, "  the row may be with the broker already, and be delivered all the same; to end the retry first:",
		"  relay parked retry --call-off " + c.keyID}
}

// find is the row that is meant, and its bucket.
func (c *parkedDiscard) find(ctx context.Context, client *store.Client, s *settings.Settings) (bucket int, row asideRow, err error) {
	found := make([]*asideRow, s.Relay.BucketCount)
	err = inBuckets(ctx, s, func(ctx context.Context, bucket int) error {
		if c.inBucket && bucket != c.bucket {
			return nil
		}
		rows, _, err := readAsideRows(ctx, client, bucket, c.keyID, c.sequence-1, 1)
		if err == nil && len(rows) > 0 && rows[0].sequence == c.sequence {
			found[bucket] = &rows[0]
		}
		return err
	})
	if err != nil {
		return 0, row, err
	}
	bucket = -1
	for b, r := range found {
		switch {
		case r == nil:
		case bucket >= 0:
			return 0, row, fmt.Errorf("key %s has a row %d in bucket %d and in bucket %d: say which with --bucket", c.keyID, c.sequence, bucket, b)
		default:
			bucket, row = b, *r
		}
	}
	if bucket < 0 {
		return 0, row, fmt.Errorf("key %s has no row %d that is set aside", c.keyID, c.sequence)
	}
	return bucket, row, nil
}

// rowFacts are what can be said of a row without showing its content.
func rowFacts(bucket int, r asideRow, now store.Ticks) []string {
	head := fmt.Sprintf("row %d of bucket %d", r.sequence, bucket)
	if r.fault != nil {
		return []string{head, "  cannot be read: " + faultText(r.fault)}
	}
	m := r.row.Message
	return []string{
		head,
		"  message    " + m.ID.String(),
		"  topic      " + legible(m.Topic),
		"  key        " + presence(m.Key),
		fmt.Sprintf("  bytes      %d, headers %d", r.row.Size, len(m.Headers)),
		fmt.Sprintf("  written    %s, %s ago", rfc3339(m.CreatedAt), ageText(now.Time().Sub(m.CreatedAt))),
	}
}
