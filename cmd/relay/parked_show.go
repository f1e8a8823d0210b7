package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// parkedShow shows one key that is set aside, and its rows. It reads only, and shows no
// content unless it is asked to.
type parkedShow struct {
	app         *app
	keyID       string
	limit       int
	showContent bool
	output      format
}

func newParkedShow(a *app) *cobra.Command {
	c := &parkedShow{app: a, limit: 20}
	return a.command(spec{
		use:   "show KEYID",
		short: "Shows one key that is set aside, and its rows, oldest first",
		long: "Shows one key that is set aside, and its rows, oldest first, without touching them. Keys, values\n" +
			"and headers are not shown without --show-content.",
		example: "  relay parked show --table orders 5d41402abc4b2a76b9719d911017c592",
		groups:  settings.Table,
		arguments: []settings.Argument{
			{Name: "limit", Value: settings.Count(&c.limit), Doc: "rows to show at most, of each bucket"},
			{Name: "show-content", Value: settings.Switch(&c.showContent), Doc: "show keys, values and headers too"},
			a.timeoutArgument(),
			outputArgument(&c.output),
		},
		check: c.check,
		run:   c.run,
	})
}

func (c *parkedShow) check(positional []string, given func(string) bool) []settings.Fault {
	if len(positional) == 0 {
		return []settings.Fault{{Setting: "KEYID", Detail: ": which key? relay parked list shows them"}}
	}
	c.keyID = positional[0]
	return append(checkKeyIDs(c.keyID), noPositional(positional[1:], given)...)
}

// checkKeyIDs finds texts that are no key ids.
func checkKeyIDs(ids ...string) (faults []settings.Fault) {
	for _, id := range ids {
		if !outbox.ValidKeyID(id) {
			faults = append(faults, settings.Fault{Setting: "KEYID", Detail: fmt.Sprintf(" %q: a key id has 32 digits, of 0-9 and a-f", id)})
		}
	}
	return faults
}

// asidePlace is a key as it is set aside in one bucket. Messages of one key stand in several
// buckets when they name their partitions.
type asidePlace struct {
	bucket int
	marker *store.Marker // nil: there are rows without one
	known  retries       // of the bucket
	rows   []asideRow
	more   bool
}

func (c *parkedShow) run(ctx context.Context, loaded *settings.Loader) error {
	s := &loaded.Settings
	client, f, err := c.app.readFleet(ctx, s)
	if err != nil {
		return err
	}
	places, err := findKey(ctx, client, s, c.keyID, c.limit, f.Now())
	if err != nil {
		return advised(err, s)
	}
	if len(places) == 0 {
		return fmt.Errorf("key %s: nothing is set aside under it in table %s", c.keyID, s.Relay.Table)
	}
	if c.output == formatJSON {
		return printJSON(c.app.stdout, c.document(s, places))
	}
	for _, p := range places {
		c.print(p)
	}
	return nil
}

// findKey looks for a key in all buckets, and reads up to limit rows of each.
func findKey(ctx context.Context, client *store.Client, s *settings.Settings, keyID string, limit int, now store.Ticks) ([]asidePlace, error) {
	all := make([]asidePlace, s.Relay.BucketCount)
	err := inBuckets(ctx, s, func(ctx context.Context, bucket int) (err error) {
		p := &all[bucket]
		p.bucket = bucket
		found, err := readMarkers(ctx, client, bucket)
		if err != nil {
			return err
		}
		p.known = found.ofBucket(bucket, now)
		if m, is := p.known.find(keyID, ""); is {
			p.marker = &m
		}
		p.rows, p.more, err = readAsideRows(ctx, client, bucket, keyID, 0, limit)
		return err
	})
	var places []asidePlace
	for _, p := range all {
		if p.marker != nil || len(p.rows) > 0 {
			places = append(places, p)
		}
	}
	return places, err
}

// asideDocument is the JSON of the command.
type asideDocument struct {
	Table   string          `json:"table"`
	KeyID   string          `json:"keyId"`
	Buckets []placeDocument `json:"buckets"`
}

type placeDocument struct {
	Bucket       int                `json:"bucket"`
	PartitionKey string             `json:"partitionKey"` // the value that all items have
	Marker       *markerDocument    `json:"marker"`       // null: rows without one
	Rows         []messageDocument  `json:"rows"`
	Unreadable   []unreadableRowDoc `json:"unreadable"` // rows that cannot be read
	More         bool               `json:"more"`
}

type markerDocument struct {
	SortKey  string  `json:"sortKey"`
	Topic    string  `json:"topic"`
	Reason   string  `json:"reason"`
	Attempts int     `json:"attempts"`
	ParkedAt string  `json:"parkedAt"`
	RetryAt  *string `json:"retryAt"` // of the key alone
	// Retry is the retry that is under way, of the key, or of its topic with which it was
	// set aside; null: none.
	Retry *retryDocument `json:"retry"`
}

type retryDocument struct {
	Since string `json:"since"`
	Why   string `json:"why"` // for people
}

type unreadableRowDoc struct {
	Sequence int64  `json:"sequence"`
	SortKey  string `json:"sortKey"`
	Fault    string `json:"fault"`
}

func (c *parkedShow) document(s *settings.Settings, places []asidePlace) asideDocument {
	d := asideDocument{Table: s.Relay.Table, KeyID: c.keyID}
	for _, p := range places {
		one := placeDocument{Bucket: p.bucket, PartitionKey: s.Schema().ParkedKey(p.bucket),
			Rows: []messageDocument{}, Unreadable: []unreadableRowDoc{}, More: p.more}
		if m := p.marker; m != nil {
			one.Marker = &markerDocument{SortKey: outbox.ParkedKeySortKey(m.KeyID), Topic: m.Topic, Reason: m.Reason,
				Attempts: m.Attempts, ParkedAt: rfc3339(m.ParkedAt.Time()), RetryAt: timeOrNull(m.RetryAt)}
			if since, why := p.known.underWay(*m); since != 0 {
				one.Marker.Retry = &retryDocument{Since: rfc3339(since.Time()), Why: why}
			}
		}
		for _, r := range p.rows {
			sortKey := outbox.ParkedRowSortKey(c.keyID, r.sequence)
			if r.fault != nil {
				one.Unreadable = append(one.Unreadable, unreadableRowDoc{r.sequence, sortKey, faultText(r.fault)})
				continue
			}
			message := messageDocumentOf(r.row, sortKey, p.known.now)
			if c.showContent {
				message.Content = contentOf(r.row.Message)
			}
			one.Rows = append(one.Rows, message)
		}
		d.Buckets = append(d.Buckets, one)
	}
	return d
}

// faultText is why a row cannot be read, without naming the row again.
func faultText(fault error) string {
	var item *outbox.ItemError
	if errors.As(fault, &item) {
		return fmt.Sprintf("attribute %s %s", item.Attribute, item.Problem)
	}
	return fault.Error()
}

func (c *parkedShow) print(p asidePlace) {
	line := func(format string, args ...any) {
		fmt.Fprintln(c.app.stdout, shortened(fmt.Sprintf(format, args...), textColumns))
	}
	line("key %s in bucket %d", c.keyID, p.bucket)
	for _, fact := range markerFacts(p.marker, p.known) {
		for _, part := range hung("  "+fact.name, fact.text, textColumns) {
			fmt.Fprintln(c.app.stdout, part)
		}
	}
	var readable []outbox.Row
	for _, r := range p.rows {
		if r.fault == nil {
			readable = append(readable, r.row)
		}
	}
	if len(readable) > 0 {
		c.app.printRows(readable, p.known.now)
	}
	for _, r := range p.rows {
		if r.fault != nil {
			line("row %d cannot be read: %s", r.sequence, faultText(r.fault))
		} else if c.showContent {
			printContent(c.app.stdout, r.row)
		}
	}
	switch {
	case p.more:
		line("there are more; --limit shows them")
	case len(p.rows) == 0:
		line("no rows")
	}
}

// markerFact is what a marker says of one thing.
type markerFact struct{ name, text string }

// markerFacts are a marker in words. None of them is cut where they are shown, since they
// say what is wrong.
func markerFacts(m *store.Marker, known retries) []markerFact {
	if m == nil {
		return []markerFact{{"", "without a marker: no relay knows of these rows, and newer ones of the key pass them; " +
			"relay parked retry writes one"}}
	}
	retry := "not asked for"
	if since, why := known.underWay(*m); since != 0 {
		retry = fmt.Sprintf("%s at %s, %s ago", why, rfc3339(since.Time()), ageText(known.now.Sub(since)))
	}
	return []markerFact{
		{"topic      ", legible(m.Topic)},
		{"reason     ", legible(m.Reason)},
		{"attempts   ", strconv.Itoa(m.Attempts)},
		{"set aside  ", fmt.Sprintf("%s, %s ago", rfc3339(m.ParkedAt.Time()), ageText(known.now.Sub(m.ParkedAt)))},
		{"retry      ", retry},
	}
}
