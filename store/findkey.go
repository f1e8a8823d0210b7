package store

import (
	"cmp"
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/bucketbrigade/relay/outbox"
)

// FindParkedKey finds the first row that is set aside behind a sort key, strongly
// consistent: one read for each key that has rows, however many those are. It is how to
// find rows without a marker, of which no relay knows. Its result is a ParkedKeyFound.
type FindParkedKey struct {
	Bucket   int
	After    string // Next of the key before; empty for the first
	NotAfter Instant
}

// ParkedKeyFound is the result of FindParkedKey.
type ParkedKeyFound struct {
	// KeyID has rows that are set aside; empty: no further key has, or what stands
	// among the rows has no key id.
	KeyID string
	// Unreadable is why what stands among the rows is none; nil when there is no such
	// item here. It is an *outbox.ItemError.
	Unreadable error
	// Next is the After of the next key; empty when there is none.
	Next string
}

// RequestName implements Request.
func (FindParkedKey) RequestName() string { return "findParkedKey" }

// Lane implements Request.
func (FindParkedKey) Lane() Lane { return Messages }

// Deadline implements Request.
func (r FindParkedKey) Deadline() Instant { return r.NotAfter }

// ConcernsBucket implements Request.
func (r FindParkedKey) ConcernsBucket() int { return r.Bucket }

// rowsEnd follows the sort keys of all rows: "$" is the character after "#".
const rowsEnd = "ROW$"

func (c *Client) findParkedKey(ctx context.Context, api API, r FindParkedKey) Reply {
	from := cmp.Or(r.After, outbox.ParkedRowSortKeyPrefix)
	in := c.parkedQuery(r.Bucket, "#sk BETWEEN :from AND :end", values{":from": text(from), ":end": text(rowsEnd)})
	in.Limit = aws.Int32(1)
	in.ProjectionExpression = aws.String("#pk, #sk") // a row's content stays where it is
	out, err := api.Query(ctx, in)
	if err != nil {
		return failedRead(r, err)
	}
	var found ParkedKeyFound
	for _, item := range out.Items {
		sortKey := stringOf(item[c.schema.SortKey])
		keyID, _, fault := outbox.ParseParkedRow(sortKey)
		if fault != nil {
			a := &attributes{schema: c.schema, item: item}
			a.fail(c.schema.SortKey, "is of no row that is set aside")
			found.Unreadable, found.Next = a.fault, sortKey+" " // no text that can be seen is between the two
			break
		}
		found.KeyID, found.Next = keyID, outbox.ParkedRowSortKeyPrefix+keyID+"$"
	}
	return Reply{Result: found, Capacity: unitsOf(out.ConsumedCapacity)}
}
