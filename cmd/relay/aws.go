package main

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/store"
)

// clients are what a command reaches the table through.
type clients struct {
	messages     store.API
	coordination store.API
	tables       store.TableAPI
	describe     tableDescriber
	region       string // in effect, wherever it was found
}

// dialer makes clients for the settings and this environment. It sends nothing.
type dialer func(ctx context.Context, s *settings.Settings) (clients, error)

// A message request may take its time; a coordination request must end well
// within a lease renewal, or it is worth less than the next one. The limits of
// attempts are small, since the relay itself tries again, with what it knows.
const (
	messageAttempts      = 3
	messageTimeout       = 10 * time.Second
	coordinationAttempts = 2
	connectTimeout       = 2 * time.Second
	maxRetryBackoff      = time.Second
)

// emulatorRegion signs requests to an emulator when no region is set anywhere:
// some region must be named, and emulators take any.
const emulatorRegion = "us-east-1"

// dialDynamoDB makes two clients from one AWS configuration, with retryers and
// connections of their own: throttled fetches must never take the retry tokens
// or the connections that keep leases alive (case D-11).
func dialDynamoDB(ctx context.Context, s *settings.Settings) (clients, error) {
	// The SDK's own warnings would be lines that are no JSON among our logs; what
	// matters of them comes back as errors.
	options := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})}
	if s.Region != "" {
		options = append(options, config.WithRegion(s.Region))
	}
	base, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return clients{}, usageErrorf("load the AWS configuration: %w", err)
	}
	if base.Region == "" {
		if s.Endpoint == "" {
			return clients{}, usageErrorf("region: none is set: set --region, RELAY_REGION, AWS_REGION or a profile's region")
		}
		base.Region = emulatorRegion
	}
	if s.Endpoint != "" {
		base.BaseEndpoint = aws.String(s.Endpoint)
	}
	messages := lane(base, messageAttempts, messageTimeout)
	// A fifth of the renew interval for one attempt: two of them and the pause
	// between them end within half an interval, which is what the relay reckons
	// a coordination request to take at most.
	coordination := lane(base, coordinationAttempts, min(messageTimeout, s.Relay.LeaseRenewInterval/5))
	return clients{messages: messages, coordination: coordination, tables: messages, describe: messages, region: base.Region}, nil
}

// lane is a client of its own: retryer, connection pool and timeout.
func lane(base aws.Config, attempts int, timeout time.Duration) *dynamodb.Client {
	return dynamodb.NewFromConfig(base, func(o *dynamodb.Options) {
		o.Retryer = retry.NewStandard(func(r *retry.StandardOptions) {
			r.MaxAttempts = attempts
			r.MaxBackoff = maxRetryBackoff
		})
		o.HTTPClient = awshttp.NewBuildableClient().
			WithTimeout(timeout).
			WithDialerOptions(func(d *net.Dialer) { d.Timeout = min(connectTimeout, timeout) }).
			WithTransportOptions(func(t *http.Transport) {
				t.MaxIdleConnsPerHost = 64
				t.TLSHandshakeTimeout = min(connectTimeout, timeout)
			})
	})
}
