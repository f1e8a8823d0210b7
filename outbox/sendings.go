package outbox

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
)

// sendings is what became of a write each time that the SDK sent it. The SDK itself shows only how the
// last one ended, and of a repetition that was answered with an error that it does not repeat, or for which
// its quota had no token left, not even that there were others:
//
//  1. a put is applied, and its answer is lost;
//  2. it is sent again, with credentials that have expired meanwhile: not allowed, and so not written.
//
// An API that takes no options tells nothing here; then the last error decides.
type sendings struct {
	last error // how the latest one ended
	// doubtful: one before the latest may have been applied.
	doubtful bool
}

// watch is an option of a request: it has each of its sendings noted.
func (s *sendings) watch(o *dynamodb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		// The last of this step is inside of the SDK's loop.
		return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("OutboxSendings", s.send), middleware.After)
	})
}

func (s *sendings) send(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
	out middleware.FinalizeOutput, metadata middleware.Metadata, err error,
) {
	s.doubtful = s.doubtful || s.last != nil && errors.Is(classify(s.last), ErrAmbiguous)
	out, metadata, err = next.HandleFinalize(ctx, in)
	s.last = err
	return out, metadata, err
}

// classify is the end of the write by an error that is no refused condition.
func (s *sendings) classify(err error) error {
	if s.doubtful {
		return ambiguous(err)
	}
	return classify(err)
}
