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

// messageList shows the waiting messages of one bucket. It reads only, and
// shows no content unless it is asked to.
type messageList struct {
	app         *app
	bucket      int
	limit       int
	showContent bool
	output      format
}

func newMessageList(a *app) *cobra.Command {
	c := &messageList{app: a, limit: 20}
	return a.command(spec{
		use:   "list --bucket N",
		short: "Shows the waiting messages of a bucket, oldest first",
		long: "Shows the waiting messages of a bucket, oldest first, without touching them. Keys, values and\n" +
			"headers are not shown without --show-content.",
		example: "  relay message list --table orders --bucket 3 --limit 5",
		groups:  settings.Table,
		arguments: []settings.Argument{
			{Name: "bucket", Value: settings.Index(&c.bucket), Doc: "bucket, from 0", Required: "a bucket is required"},
			{Name: "limit", Value: settings.Count(&c.limit), Doc: "messages to show at most"},
			{Name: "show-content", Value: settings.Switch(&c.showContent), Doc: "show keys, values and headers too"},
			a.timeoutArgument(),
			outputArgument(&c.output),
		},
		run: c.run,
	})
}

func (c *messageList) run(ctx context.Context, loaded *settings.Loader) error {
	s := &loaded.Settings
	if err := checkBucket(s, c.bucket); err != nil {
		return err
	}
	client, f, err := c.app.readFleet(ctx, s)
	if err != nil {
		return err
	}
	w, err := c.read(ctx, client)
	if err != nil {
		return advised(err, s)
	}
	if c.output == formatJSON {
		err = printJSON(c.app.stdout, c.document(s, w, f.Now()))
	} else {
		c.print(s, w, f.Now())
	}
	if err == nil && w.malformed != nil {
		err = fmt.Errorf("bucket %d: the next row cannot be read, and its relay stops there: %w%s", c.bucket, w.malformed, c.repairAdvice(w.malformed))
	}
	return err
}

// repairAdvice is what to do with a row that cannot be read; empty when it is not known
// which row that is.
func (c *messageList) repairAdvice(fault error) string {
	var item *outbox.ItemError
	if !errors.As(fault, &item) {
		return ""
	}
	sequence, err := outbox.ParseSequence(item.SortKey)
	if err != nil {
		return "\n  repair the item"
	}
	return fmt.Sprintf("\n  repair the row, or set it aside: relay message park --bucket %d --sequence %d", c.bucket, sequence)
}

// waiting is what stands at the head of a bucket.
type waiting struct {
	rows      []outbox.Row
	malformed error // why the row after rows cannot be read; nil when it can, or is not known
	more      bool  // there are rows beyond the limit
}

// read follows the pages until the limit is passed. It asks for one row more
// than are shown, to know whether there are more.
func (c *messageList) read(ctx context.Context, client *store.Client) (waiting, error) {
	var w waiting
	var after int64
	for len(w.rows) <= c.limit {
		reply := client.Do(ctx, store.Fetch{Bucket: c.bucket, After: after, Limit: c.limit + 1 - len(w.rows)})
		if reply.Class != store.Done {
			return w, fmt.Errorf("list messages of bucket %d: %w", c.bucket, reply.Err)
		}
		page := reply.Result.(store.Fetched)
		w.rows = append(w.rows, page.Rows...)
		w.malformed = page.Malformed
		if page.Malformed != nil || !page.More || len(page.Rows) == 0 {
			break
		}
		after = page.Rows[len(page.Rows)-1].Sequence
	}
	if len(w.rows) > c.limit {
		w.rows, w.more, w.malformed = w.rows[:c.limit], true, nil
	}
	return w, nil
}

// waitingDocument is the JSON of the command.
type waitingDocument struct {
	Table        string            `json:"table"`
	PartitionKey string            `json:"partitionKey"` // the value that all rows have
	Bucket       int               `json:"bucket"`
	Messages     []messageDocument `json:"messages"`
	More         bool              `json:"more"`
	Malformed    string            `json:"malformed,omitempty"`
}

// messageDocument is one message that waits, or is set aside. Bytes that are null are absent.
type messageDocument struct {
	Sequence    int64            `json:"sequence"`
	SortKey     string           `json:"sortKey"`
	ID          string           `json:"id"`
	Topic       string           `json:"topic"`
	Partition   *int32           `json:"partition"`
	KeyBytes    *int             `json:"keyBytes"`
	ValueBytes  *int             `json:"valueBytes"`
	Headers     int              `json:"headers"`
	ItemBytes   int              `json:"itemBytes"`
	BucketCount *int             `json:"bucketCount"` // the writer's; null when not stamped
	CreatedAt   string           `json:"createdAt"`
	AgeSeconds  float64          `json:"ageSeconds"`
	Content     *contentDocument `json:"content,omitempty"`
}

func (c *messageList) document(s *settings.Settings, w waiting, now store.Ticks) waitingDocument {
	schema := s.Schema()
	d := waitingDocument{Table: schema.Table, PartitionKey: schema.MessagesKey(c.bucket), Bucket: c.bucket,
		Messages: []messageDocument{}, More: w.more}
	if w.malformed != nil {
		d.Malformed = w.malformed.Error()
	}
	for _, row := range w.rows {
		message := messageDocumentOf(row, outbox.SequenceSortKey(row.Sequence), now)
		if c.showContent {
			message.Content = contentOf(row.Message)
		}
		d.Messages = append(d.Messages, message)
	}
	return d
}

// messageDocumentOf is a row, without its content, in the JSON of whatever shows rows.
func messageDocumentOf(row outbox.Row, sortKey string, now store.Ticks) messageDocument {
	m := row.Message
	d := messageDocument{
		Sequence:   row.Sequence,
		SortKey:    sortKey,
		ID:         m.ID.String(),
		Topic:      m.Topic,
		Partition:  m.Partition,
		KeyBytes:   sizeOrNull(m.Key),
		ValueBytes: sizeOrNull(m.Value),
		Headers:    len(m.Headers),
		ItemBytes:  row.Size,
		CreatedAt:  rfc3339(m.CreatedAt),
		AgeSeconds: seconds(now.Time().Sub(m.CreatedAt)),
	}
	if row.BucketCount != 0 {
		d.BucketCount = &row.BucketCount
	}
	return d
}

func sizeOrNull(b []byte) *int {
	if b == nil {
		return nil
	}
	n := len(b)
	return &n
}

var waitingColumns = []column{
	{title: "SEQUENCE", right: true}, {title: "AGE", right: true}, {title: "BYTES", right: true},
	{title: "KEY"}, {title: "TOPIC", elastic: true}, {title: "MESSAGE ID"},
}

func (c *messageList) print(s *settings.Settings, w waiting, now store.Ticks) {
	out := c.app.stdout
	if len(w.rows) == 0 {
		if w.malformed != nil { // one does, and cannot be shown: the error says which
			return
		}
		c.app.printFolded(fmt.Sprintf("bucket %d of table %s: no message waits", c.bucket, s.Relay.Table))
		return
	}
	c.app.printFolded(fmt.Sprintf("bucket %d of table %s: oldest first, partition key %s",
		c.bucket, s.Relay.Table, s.Schema().MessagesKey(c.bucket)))
	c.app.printRows(w.rows, now)
	if c.showContent {
		for _, row := range w.rows {
			printContent(out, row)
		}
	}
	if w.more {
		fmt.Fprintf(out, "there are more; --limit shows them\n")
	}
	for _, row := range w.rows {
		if row.BucketCount != 0 && row.BucketCount != s.Relay.BucketCount {
			c.app.printFolded(fmt.Sprintf("row %d was written for %s, these settings say %d: no relay with them passes it",
				row.Sequence, counted(row.BucketCount, "bucket"), s.Relay.BucketCount))
			break // the relay stops at the first
		}
	}
}

// printRows shows rows without their content.
func (a *app) printRows(rows []outbox.Row, now store.Ticks) {
	lines := make([][]string, len(rows))
	for i, row := range rows {
		m := row.Message
		lines[i] = []string{
			strconv.FormatInt(row.Sequence, 10), ageText(now.Time().Sub(m.CreatedAt)), strconv.Itoa(row.Size),
			presence(m.Key), legible(m.Topic), m.ID.String(),
		}
	}
	a.printTable(waitingColumns, lines)
}

// presence tells a key's size, and an empty key from none.
func presence(key []byte) string {
	switch {
	case key == nil:
		return "none"
	case len(key) == 0:
		return "empty"
	default:
		return fmt.Sprintf("%d B", len(key))
	}
}
