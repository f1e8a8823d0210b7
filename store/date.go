package store

import (
	"errors"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	smithytime "github.com/aws/smithy-go/time"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/bucketbrigade/relay/outbox"
)

// dateOf is the Date header of the response that an operation ended with, as the
// SDK has noted it; 0: there was none.
func dateOf(metadata middleware.Metadata) Ticks {
	at, _ := awsmiddleware.GetServerTime(metadata)
	return ticksOf(at)
}

// dateOfError is the same of a response that was an error.
func dateOfError(err error) Ticks {
	var answer *smithyhttp.ResponseError
	if !errors.As(err, &answer) || answer.Response == nil {
		return 0
	}
	at, err := smithytime.ParseHTTPDate(answer.Response.Header.Get("Date"))
	if err != nil {
		return 0
	}
	return ticksOf(at)
}

func ticksOf(at time.Time) Ticks {
	if at.IsZero() {
		return 0
	}
	return Ticks(outbox.Ticks(at))
}
