package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
)

// Client sends requests to one table. It is safe for concurrent use and holds
// no state but its configuration.
type Client struct {
	schema outbox.Schema
	lanes  [2]API
}

// NewClient makes a client of the schema's table that sends requests for
// messages through one API and those for coordination through the other.
func NewClient(schema outbox.Schema, messages, coordination API) *Client {
	c := &Client{schema: schema.WithDefaults()}
	c.lanes[Messages], c.lanes[Coordination] = messages, coordination
	return c
}

// Schema is the layout that the client uses.
func (c *Client) Schema() outbox.Schema { return c.schema }

// Do sends one request and waits for its end. It does not check the request's
// deadline: whoever queues requests does, at the moment of sending. When ctx
// ends first, a read is Retriable and a write Ambiguous.
func (c *Client) Do(ctx context.Context, r Request) Reply {
	api := c.lanes[r.Lane()]
	switch r := r.(type) {
	case Heartbeat:
		return c.heartbeat(ctx, api, r)
	case ReadCoordination:
		return c.readCoordination(ctx, api, r)
	case Claim:
		return c.claim(ctx, api, r)
	case Keep:
		return c.keep(ctx, api, r)
	case Release:
		return c.release(ctx, api, r)
	case StampStopped:
		return c.stampStopped(ctx, api, r)
	case Prune:
		return c.prune(ctx, api, r)
	case ReadCounter:
		return c.readCounter(ctx, api, r)
	case ReadLast:
		return c.readLast(ctx, api, r)
	case ReadParkedNumbers:
		return c.readParkedNumbers(ctx, api, r)
	case RaiseCounter:
		return c.raiseCounter(ctx, api, r)
	case Discover:
		return c.discover(ctx, api, r)
	case Fetch:
		return c.fetch(ctx, api, r)
	case Probe:
		return c.probe(ctx, api, r)
	case Delete:
		return c.delete(ctx, api, r)
	case ReadHead:
		return c.readHead(ctx, api, r)
	case Count:
		return c.count(ctx, api, r)
	case Try:
		return c.try(ctx, api, r)
	default:
		return c.setAside(ctx, api, r)
	}
}

// NotSent is the reply to a request whose deadline passed before it was sent.
func NotSent(r Request) Reply {
	return Reply{Class: Retriable, Err: fmt.Errorf("%s: %w", r.RequestName(), ErrNotSent)}
}

// failedRead is the reply to a read that failed: it can simply be repeated.
func failedRead(r Request, err error) Reply {
	_, sentinel := classify(err)
	return Reply{Class: Retriable, Err: wrap(r, sentinel, err)}
}

// failedWrite is the reply to a write that failed for another reason than its
// condition.
func failedWrite(r Request, err error) Reply {
	class, sentinel := classify(err)
	return Reply{Class: class, Err: wrap(r, sentinel, err)}
}

func wrap(r Request, sentinel, err error) error {
	return fmt.Errorf("%s: %w: %w", r.RequestName(), sentinel, err)
}

// refusedBy is the item that failed a write's condition, and whether it was
// the condition that failed. The item is nil when there was none.
func refusedBy(err error) (map[string]types.AttributeValue, bool) {
	var failed *types.ConditionalCheckFailedException
	if !errors.As(err, &failed) {
		return nil, false
	}
	return failed.Item, true
}

func units(consumed ...types.ConsumedCapacity) float64 {
	var sum float64
	for _, c := range consumed {
		sum += aws.ToFloat64(c.CapacityUnits)
	}
	return sum
}

func unitsOf(consumed *types.ConsumedCapacity) float64 {
	if consumed == nil {
		return 0
	}
	return units(*consumed)
}
