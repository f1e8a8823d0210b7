package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
)

// transaction is what one TransactWriteItems is made of. The service says why each
// item was refused by position only, so that roles goes along with items.
type transaction struct {
	items []types.TransactWriteItem
	roles []Refusal // what a refused condition of the item means
}

func (x *transaction) check(role Refusal, check types.ConditionCheck) {
	x.add(role, types.TransactWriteItem{ConditionCheck: &check})
}

func (x *transaction) put(role Refusal, put types.Put) {
	x.add(role, types.TransactWriteItem{Put: &put})
}

func (x *transaction) update(role Refusal, update types.Update) {
	x.add(role, types.TransactWriteItem{Update: &update})
}

func (x *transaction) remove(role Refusal, remove types.Delete) {
	x.add(role, types.TransactWriteItem{Delete: &remove})
}

func (x *transaction) add(role Refusal, item types.TransactWriteItem) {
	x.items = append(x.items, item)
	x.roles = append(x.roles, role)
}

// underLease begins a transaction with the lease check of protocol.md section 7: the
// lease item is that tenure's. Expiry is no part of it: what an owner sent before its
// lease ran out is harmless until somebody else has claimed, and then Claim or Owner
// is another one.
func (c *Client) underLease(t Tenure) transaction {
	var x transaction
	x.check(LeaseRefused, types.ConditionCheck{
		TableName:           &c.schema.Table,
		Key:                 c.schema.Key(c.schema.CoordinationKey(), outbox.LeaseSortKey(t.Bucket)),
		ConditionExpression: aws.String("#owner = :me AND #incarnation = :inc AND #claim = :claim"),
		ExpressionAttributeNames: map[string]string{
			"#owner": outbox.AttrOwner, "#incarnation": outbox.AttrIncarnation, "#claim": outbox.AttrClaim,
		},
		ExpressionAttributeValues: values{
			":me": text(t.Relay), ":inc": text(t.Incarnation), ":claim": number(t.Claim),
		},
	})
	return x
}

// transact sends a transaction under its token, by which the service knows a
// repetition of one that it has applied, for ten minutes, and answers it as a success.
// The result is a MoveResult when the transaction was applied or refused.
func (c *Client) transact(ctx context.Context, api API, r Request, token string, x transaction) Reply {
	out, err := api.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems:          x.items,
		ClientRequestToken:     &token,
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	if err == nil {
		return Reply{Result: MoveResult{}, Capacity: units(out.ConsumedCapacity...)}
	}
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) {
		return failedWrite(r, err)
	}
	v := judge(cancelled.CancellationReasons, x.roles)
	if v.detail != "" {
		err = fmt.Errorf("%s: %w", v.detail, err)
	}
	switch {
	case v.refusal != NotRefused:
		return Reply{Class: Refused, Err: wrap(r, ErrConditionFailed, err), Result: MoveResult{Refusal: v.refusal}}
	case repeated(err):
		return Reply{Class: Ambiguous, Err: wrap(r, v.fault, err)}
	default:
		return Reply{Class: Retriable, Err: wrap(r, v.fault, err)}
	}
}

// Codes of cancellation reasons, all that the service documents.
const (
	reasonNone       = "None"
	reasonCondition  = "ConditionalCheckFailed"
	reasonConflict   = "TransactionConflict"
	reasonThroughput = "ProvisionedThroughputExceeded"
	reasonThrottling = "ThrottlingError"
	reasonValidation = "ValidationError"
	reasonCollection = "ItemCollectionSizeLimitExceeded"
)

// verdict is what a cancelled transaction comes to: it was refused, or else could not
// be carried out because of fault.
type verdict struct {
	refusal Refusal
	fault   error
	detail  string // of what the error itself does not say
}

// judge weighs the reasons of a cancelled transaction, one for each of its items. A
// cancelled transaction has changed nothing.
//
//   - A refused lease check comes first, whatever else there is: owner, incarnation and
//     claim never come back once they have changed, so that no other outcome of the
//     other items could make the tenure valid again.
//   - Then whatever kept an item from being looked at: conflict, throttling, the
//     unknown. Of such a transaction no refusal of a marker or a row is believed. An
//     item in conflict is one that another transaction (an earlier owner's move, say) is
//     changing right now, and transactions become visible item by item: a row that is
//     gone already and its neighbour that is not yet are one move, and whoever took the
//     refusal as final would read and publish the neighbour. Asked again, when the other
//     one has ended, the same transaction is refused for good. It costs a repetition.
//   - Then refusals: markers before rows.
//   - Last, what the service would never accept (an item too large). It is no refusal,
//     since it says nothing about the state of the table; and with a refusal beside it,
//     the picture that the transaction was made from is out of date anyway.
func judge(reasons []types.CancellationReason, roles []Refusal) verdict {
	if len(reasons) != len(roles) {
		return verdict{fault: ErrUnavailable, detail: fmt.Sprintf("%d reasons for %d items", len(reasons), len(roles))}
	}
	refusal := NotRefused
	faults := map[error]string{}
	for i, reason := range reasons {
		code := aws.ToString(reason.Code)
		if code == reasonCondition {
			if refusal == NotRefused || roles[i] < refusal {
				refusal = roles[i]
			}
			continue
		}
		if fault := faultOf(code); fault != nil && faults[fault] == "" {
			// The service's text is about the request, never an item's content.
			faults[fault] = fmt.Sprintf("item %d of %d (%s): %s: %s", i+1, len(roles), roles[i], code, aws.ToString(reason.Message))
		}
	}
	if refusal == LeaseRefused {
		return verdict{refusal: refusal, detail: refusal.String()}
	}
	for _, fault := range []error{ErrConflict, ErrThrottled, ErrUnavailable} {
		if faults[fault] != "" {
			return verdict{fault: fault, detail: faults[fault]}
		}
	}
	switch {
	case refusal != NotRefused:
		return verdict{refusal: refusal, detail: refusal.String()}
	case faults[ErrInvalid] != "":
		return verdict{fault: ErrInvalid, detail: faults[ErrInvalid]}
	default:
		return verdict{fault: ErrUnavailable, detail: "no reason was given"}
	}
}

// faultOf is what a reason other than a refused condition stands for; nil for none.
func faultOf(code string) error {
	switch code {
	case reasonNone, "":
		return nil
	case reasonConflict:
		return ErrConflict
	case reasonThroughput, reasonThrottling:
		return ErrThrottled
	case reasonValidation, reasonCollection:
		return ErrInvalid
	default:
		return ErrUnavailable
	}
}
