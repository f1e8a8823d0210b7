package integration

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// Every request that a relay can send is named as the protocol names it, when it
// passes by in the form in which the SDK sends it.
func TestRequestsAreNamed(t *testing.T) {
	var seen []request
	table := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		seen = append(seen, nameRequest(r.Header.Get("X-Amz-Target"), text))
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.Write([]byte("{}"))
	}))
	defer table.Close()
	api := dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(table.URL), Region: "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
	client := store.NewClient(outbox.Schema{Table: "orders"}.WithDefaults(), api, api)
	for _, c := range []struct {
		sent store.Request
		want request
	}{
		{store.Heartbeat{Relay: "a", Incarnation: "1", LastSeen: 1}, request{kind: heartbeat, bucket: -1}},
		{store.ReadCoordination{}, request{kind: coordination, bucket: -1, strong: true}},
		{store.ReadCoordination{After: "LEASE#0000000001"}, request{kind: coordination, bucket: -1, strong: true}},
		{store.Claim{Bucket: 7, Relay: "a", Claim: 1, Now: 1, Expires: 2}, request{kind: claim, bucket: 7}},
		{store.Keep{Bucket: 0, Relay: "a", Claim: 1, Seen: 1, Expires: 2}, request{kind: keep, bucket: 0}},
		{store.Release{Bucket: 12, Relay: "a", Seen: 1, Now: 1}, request{kind: release, bucket: 12}},
		{store.StampStopped{Relay: "a", Incarnation: "1", At: 1}, request{kind: stamp, bucket: -1}},
		{store.Prune{Relay: "b", Stopped: 1, Dead: 1}, request{kind: prune, bucket: -1}},
		{store.Discover{Bucket: 3}, request{kind: discovery, bucket: 3, limit: 1}},
		{store.Fetch{Bucket: 3, Limit: 500}, request{kind: fetch, bucket: 3, strong: true, limit: 500}},
		{store.Fetch{Bucket: 3, After: 41, Limit: 5}, request{kind: fetch, bucket: 3, strong: true, limit: 5}},
		{store.Probe{Bucket: 3, From: 4, To: 6}, request{kind: probe, bucket: 3, strong: true, limit: 1}},
		{store.ReadMarkers{Bucket: 3}, request{kind: markers, bucket: 3, strong: true}},
		{store.ReadHead{Bucket: 3}, request{kind: backlog, bucket: 3, limit: 1}},
		{store.Count{Bucket: 3, Of: store.Pending, Limit: 1_000}, request{kind: backlog, bucket: 3, limit: 1_000}},
		{store.Count{Bucket: 3, Of: store.ParkedKeys, Limit: 1_000}, request{kind: backlog, bucket: 3, limit: 1_000}},
		{store.Count{Bucket: 3, Of: store.ParkedRows, Limit: 1_000}, request{kind: backlog, bucket: 3, limit: 1_000}},
		{store.Delete{Bucket: 3, Sequences: []int64{4, 5}}, request{kind: deletion, bucket: 3}},
	} {
		seen = nil
		client.Do(t.Context(), c.sent)
		if len(seen) != 1 || seen[0] != c.want {
			t.Errorf("%+v is seen as %+v, want %+v", c.sent, seen, c.want)
		}
	}
}

// What a relay has no business to send is not taken for something else.
func TestRequestsThatAreNotNamed(t *testing.T) {
	const target = "DynamoDB_20120810."
	for name, c := range map[string]struct{ operation, text string }{
		"a table's description":   {"DescribeTable", `{"TableName":"orders"}`},
		"a scan":                  {"Scan", `{"TableName":"orders"}`},
		"no JSON":                 {"Query", `PK`},
		"a row that is put":       {"PutItem", `{"Item":{"PK":{"S":"OUTBOX#MESSAGES#1"},"SK":{"S":"1"}}}`},
		"a row that is deleted":   {"DeleteItem", `{"Key":{"PK":{"S":"OUTBOX#MESSAGES#1"},"SK":{"S":"1"}}}`},
		"a lease that is deleted": {"DeleteItem", `{"Key":{"PK":{"S":"OUTBOX#COORDINATION"},"SK":{"S":"LEASE#0000000001"}}}`},
		"a counter's update":      {"UpdateItem", `{"Key":{"PK":{"S":"OUTBOX#SEQUENCE#1"},"SK":{"S":"SEQUENCE"}}}`},
		"a counter's query":       {"Query", `{"ExpressionAttributeValues":{":pk":{"S":"OUTBOX#SEQUENCE#1"}}}`},
		"rows that are set aside": {"Query", `{"ConsistentRead":true,"ExpressionAttributeValues":{":pk":{"S":"OUTBOX#PARKED#1"}}}`},
		"a batch that puts":       {"BatchWriteItem", `{"RequestItems":{"orders":[{"PutRequest":{}}]}}`},
		"deletes of two buckets": {"BatchWriteItem", `{"RequestItems":{"orders":[` +
			`{"DeleteRequest":{"Key":{"PK":{"S":"OUTBOX#MESSAGES#1"}}}},{"DeleteRequest":{"Key":{"PK":{"S":"OUTBOX#MESSAGES#2"}}}}]}}`},
		"a batch of nothing": {"BatchWriteItem", `{}`},
	} {
		if got := nameRequest(target+c.operation, []byte(c.text)); !strings.HasPrefix(string(got.kind), string(unknown)) {
			t.Errorf("%s is seen as %+v", name, got)
		}
	}
}
