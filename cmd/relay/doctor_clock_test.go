package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// distant is a table whose clock shows another time than ours. It has one relay, which
// sent its heartbeat five seconds ago by the table's clock.
type distant struct{ at time.Time }

func (d distant) Do(request *http.Request) (*http.Response, error) {
	body := fmt.Sprintf(`{"Count": 1, "Items": [{"PK": {"S": "OUTBOX#COORDINATION"}, "SK": {"S": "RELAY#A"},
		"LastSeenUtc": {"N": "%d"}, "Incarnation": {"S": "1-a"}, "Mode": {"S": "ordered"}}]}`, outbox.Ticks(d.at.Add(-5*time.Second)))
	return &http.Response{
		StatusCode: http.StatusOK, Request: request, Body: io.NopCloser(strings.NewReader(body)),
		Header: http.Header{"Date": {d.at.UTC().Format(http.TimeFormat)}, "Content-Type": {"application/x-amz-json-1.0"}},
	}, nil
}

// A host whose clock is wrong is told so, and sees the fleet as it is all the same: what
// is late is decided by the table's clock.
func TestDoctorGoesByTheTablesClock(t *testing.T) {
	for _, off := range []time.Duration{-time.Hour, -time.Minute, 0, time.Minute, time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			api := dynamodb.New(dynamodb.Options{Region: "us-east-1", BaseEndpoint: aws.String("http://table"),
				Credentials: credentials.NewStaticCredentialsProvider("id", "key", ""), HTTPClient: distant{noon.Add(-off)}})
			s := settings.Defaults()
			s.Relay.Table = "orders"
			f := &fleetChecks{app: &app{now: func() time.Time { return noon }}, settings: &s, outbox: &outboxChecks{settings: &s},
				client: store.NewClient(s.Schema(), api, api)}
			f.gather(t.Context())
			e := examination{doctorDocument: doctorDocument{Checks: f.judge()}}
			status := statusFailure
			if off == 0 {
				status = statusOK
			}
			e.wants(t, checkClock, status)
			e.wants(t, checkRelays, statusOK, "A (ordered)")
			e.wants(t, checkSilent, statusOK)
			e.wants(t, checkRelayClocks, statusOK)
		})
	}
}
