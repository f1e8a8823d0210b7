package store

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
)

// attributes reads the attributes of one item; the first fault is kept, and
// names the item and the attribute.
type attributes struct {
	schema outbox.Schema
	item   map[string]types.AttributeValue
	fault  error
}

func (a *attributes) fail(name, problem string) {
	if a.fault == nil {
		a.fault = &outbox.ItemError{
			PartitionKey: stringOf(a.item[a.schema.PartitionKey]),
			SortKey:      stringOf(a.item[a.schema.SortKey]),
			Attribute:    name,
			Problem:      problem,
		}
	}
}

// text is a string attribute, empty when absent.
func (a *attributes) text(name string) string {
	switch v := a.item[name].(type) {
	case nil:
		return ""
	case *types.AttributeValueMemberS:
		return v.Value
	default:
		a.fail(name, fmt.Sprintf("is a %s, must be a string", kindOf(v)))
		return ""
	}
}

// number is a whole number attribute, 0 when absent.
func (a *attributes) number(name string) int64 {
	switch v := a.item[name].(type) {
	case nil:
		return 0
	case *types.AttributeValueMemberN:
		n, err := strconv.ParseInt(v.Value, 10, 64)
		if err != nil {
			a.fail(name, fmt.Sprintf("%q is no whole number of 64 bits", v.Value))
			return 0
		}
		return n
	default:
		a.fail(name, fmt.Sprintf("is a %s, must be a number", kindOf(v)))
		return 0
	}
}

func kindOf(v types.AttributeValue) string {
	return strings.TrimPrefix(fmt.Sprintf("%T", v), "*types.AttributeValueMember")
}

func stringOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// decodeCoordination sorts the items of one page of the coordination
// partition. Items that are neither leases nor relays are not ours.
func decodeCoordination(schema outbox.Schema, items []map[string]types.AttributeValue) CoordinationPage {
	var page CoordinationPage
	for _, item := range items {
		key := stringOf(item[schema.SortKey])
		switch {
		case strings.HasPrefix(key, outbox.LeaseSortKeyPrefix):
			lease, err := decodeLease(schema, item)
			if err != nil {
				page.Unreadable = append(page.Unreadable, err)
			}
			if lease.Bucket >= 0 {
				page.Leases = append(page.Leases, lease)
			}
		case strings.HasPrefix(key, outbox.RelaySortKeyPrefix):
			record, err := decodeRelay(schema, item)
			if err != nil {
				page.Unreadable = append(page.Unreadable, err)
				continue
			}
			page.Relays = append(page.Relays, record)
		}
	}
	return page
}

// decodeLease reads a lease item. It is Unreadable when its owner or its expiry
// cannot be read; its bucket is -1 when even that cannot. The error names the
// first attribute that is wrong, whichever it is.
func decodeLease(schema outbox.Schema, item map[string]types.AttributeValue) (Lease, error) {
	a := &attributes{schema: schema, item: item}
	digits := strings.TrimPrefix(stringOf(item[schema.SortKey]), outbox.LeaseSortKeyPrefix)
	bucket, err := strconv.Atoi(digits)
	if err != nil || bucket < 0 || outbox.LeaseSortKey(bucket) != outbox.LeaseSortKeyPrefix+digits {
		bucket = -1
		a.fail(schema.SortKey, "is no bucket of 10 digits")
	}
	lease := Lease{
		Bucket:  bucket,
		Owner:   a.text(outbox.AttrOwner),
		Expires: Ticks(a.number(outbox.AttrExpiresAtUtc)),
	}
	lease.Unreadable = a.fault != nil // what follows is told, and decides nothing
	lease.Incarnation = a.text(outbox.AttrIncarnation)
	lease.Claim = a.number(outbox.AttrClaim)
	lease.Attention = Ticks(a.number(outbox.AttrAttention))
	lease.PausedUntil = Ticks(a.number(outbox.AttrPausedUntilUtc))
	lease.PausedBy = a.text(outbox.AttrPausedBy)
	lease.PauseReason = a.text(outbox.AttrPauseReason)
	return lease, a.fault
}

func decodeRelay(schema outbox.Schema, item map[string]types.AttributeValue) (RelayRecord, error) {
	a := &attributes{schema: schema, item: item}
	record := RelayRecord{
		ID:          strings.TrimPrefix(stringOf(item[schema.SortKey]), outbox.RelaySortKeyPrefix),
		LastSeen:    Ticks(a.number(outbox.AttrLastSeenUtc)),
		Stopped:     Ticks(a.number(outbox.AttrStoppedAtUtc)),
		Incarnation: a.text(outbox.AttrIncarnation),
		Mode:        a.text(outbox.AttrMode),
	}
	return record, a.fault
}
