package outbox

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"
)

// Limits of a call, checked before anything is sent.
const (
	// MaxItemBytes is what the item of a message may have, by the rules of ItemSize: DynamoDB's limit of
	// 400 KiB, less 1 KiB, so that every row can be set aside under a longer key.
	MaxItemBytes = 400<<10 - 1<<10
	// MaxCallItems is how many items a transaction may have, the caller's own included.
	MaxCallItems = 100
	// MaxCallBytes is what all items of a transaction may have together.
	MaxCallBytes = 4 << 20
)

// entry is one message on its way into the table.
type entry struct {
	id       uuid.UUID
	bucket   int
	sequence int64                           // 0 until it is reserved
	item     map[string]types.AttributeValue // its sort key is a place holder until then
}

// prepare turns the messages of a call into entries without numbers, or returns everything that is wrong
// with any of them, joined. Own are the items that the caller puts into the same transaction; trace are
// the headers of the trace that the call is in.
func (w *Writer) prepare(messages []Message, own []types.TransactWriteItem, trace []Header) ([]entry, error) {
	var faults []error
	entries := make([]entry, 0, len(messages))
	sum := callSum{bytes: ownBytes(own)}
	if first := max(0, MaxCallItems-len(own)); len(messages) > first {
		faults = append(faults, fmt.Errorf("%s: the first beyond the limit of %d items, the call has %d",
			describe(first, messages[first].ID), MaxCallItems, len(own)+len(messages)))
	}
	for i, m := range messages {
		if m.CreatedAt.IsZero() {
			m.CreatedAt = time.Now()
		}
		if problems := m.problems(); len(problems) > 0 {
			faults = append(faults, fmt.Errorf("%s: %s", describe(i, m.ID), strings.Join(problems, ", ")))
			continue
		}
		m.Headers = w.withTrace(m.Headers, trace)
		bucket := m.Bucket(w.schema.BucketCount)
		// Every sort key has as many digits, so the size is known before the number is.
		item := w.schema.EncodeMessage(m, bucket, 0)
		size := ItemSize(item)
		if size > MaxItemBytes {
			faults = append(faults, &SizeError{Index: i, ID: m.ID, Size: size, Limit: MaxItemBytes})
		}
		sum.add(i, m.ID, size)
		entries = append(entries, entry{id: m.ID, bucket: bucket, item: item})
	}
	faults = append(faults, sum.fault()...)
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return entries, nil
}

// problems is what makes the message one that no relay could publish, or the table not keep.
func (m Message) problems() []string {
	var problems []string
	if m.ID == uuid.Nil {
		problems = append(problems, "its id is zero")
	}
	if strings.TrimSpace(m.Topic) == "" {
		problems = append(problems, fmt.Sprintf("topic %q is blank", m.Topic))
	}
	if !utf8.ValidString(m.Topic) {
		problems = append(problems, fmt.Sprintf("topic %q is not valid UTF-8", m.Topic))
	}
	if m.Partition != nil && *m.Partition < 0 {
		problems = append(problems, fmt.Sprintf("partition %d is negative", *m.Partition))
	}
	if year := m.CreatedAt.UTC().Year(); year < 1 || year > 9999 {
		problems = append(problems, fmt.Sprintf("it was created in the year %d, not from 1 to 9999", year))
	}
	return problems
}

// callSum adds up the bytes of one call.
type callSum struct {
	bytes int
	over  *SizeError // the message with which the bytes passed the limit
}

// add counts the item of the message at index.
func (c *callSum) add(index int, id uuid.UUID, size int) {
	c.bytes += size
	if c.over == nil && c.bytes > MaxCallBytes {
		c.over = &SizeError{Index: index, ID: id, Limit: MaxCallBytes}
	}
}

// fault is the error for all that was added, or nil.
func (c *callSum) fault() []error {
	if c.over == nil {
		return nil
	}
	c.over.Size = c.bytes
	return []error{c.over}
}

// ownBytes is what the caller's items are known to have. Only puts say how large they are; DynamoDB
// judges the others.
func ownBytes(own []types.TransactWriteItem) int {
	size := 0
	for _, item := range own {
		if item.Put != nil {
			size += ItemSize(item.Put.Item)
		}
	}
	return size
}
