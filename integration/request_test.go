package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// kind is what the protocol calls a request (protocol, sections 3 and 5). What it
// does not know has the operation's name and keys as its kind, behind "unknown".
type kind string

const (
	heartbeat    kind = "heartbeat"
	coordination kind = "coordination query"
	claim        kind = "claim"
	keep         kind = "keep"
	release      kind = "release"
	stamp        kind = "stamp"
	prune        kind = "prune"
	discovery    kind = "discovery"
	fetch        kind = "fetch"
	probe        kind = "probe"
	deletion     kind = "delete"
	markers      kind = "markers query" // what is set aside of a bucket; section 7
	backlog      kind = "backlog query" // for the metrics, of all buckets, by the owner of bucket 0
	unknown      kind = "unknown"
)

// request is one request of a relay process, as it passed by on its way to the
// table. The parts behind answered are set once it has its answer.
type request struct {
	relay  string // the process that sent it
	kind   kind
	bucket int  // that it is about; -1: none
	strong bool // a strongly consistent read
	limit  int  // of a query; 0: none
	sent   time.Time
	// call is the SDK's name for the call that the request belongs to, and attempt
	// its number there, from 1: the SDK repeats what it has no answer to in time.
	call    string
	attempt int

	answered time.Time // zero: not yet
	status   int       // HTTP's; 0: the table has not answered
	refused  bool      // its condition failed
	dated    bool      // the answer says the service's time
}

// attemptForm is the header in which the SDK counts its attempts.
var attemptForm = regexp.MustCompile(`^attempt=(\d+);`)

// belong sets the call and attempt, from an HTTP request's header.
func (r *request) belong(header http.Header) {
	r.call, r.attempt = header.Get("Amz-Sdk-Invocation-Id"), 1
	if found := attemptForm.FindStringSubmatch(header.Get("Amz-Sdk-Request")); found != nil {
		r.attempt = numberOf(found[1])
	}
}

// answer sets the parts behind answered, from an HTTP response; a nil header: there
// was none.
func (r *request) answer(at time.Time, status int, header http.Header, text []byte) {
	r.answered, r.status = at, status
	r.dated = header.Get("Date") != ""
	r.refused = status == http.StatusBadRequest && bytes.Contains(text, []byte("#ConditionalCheckFailedException"))
}

// applied tells whether the table has done what it was asked.
func (r request) applied() bool { return r.status == http.StatusOK }

// moves tells whether the request, once applied, gives a bucket another owner.
func (r request) moves() bool { return r.kind == claim || r.kind == release }

// coordinates tells whether it goes to the partition of leases and relays.
func (r request) coordinates() bool {
	return slices.Contains([]kind{heartbeat, coordination, claim, keep, release, stamp, prune}, r.kind)
}

// works tells whether it is about the rows of a bucket that its sender owns: neither
// coordination, nor a look at the backlog of everybody's buckets.
func (r request) works() bool { return !r.coordinates() && r.kind != backlog }

// attribute is a value in a request's body, as far as keys need it.
type attribute struct{ S string }

// body is the part of a request's JSON that its name depends on.
type body struct {
	Key, Item                 map[string]attribute
	UpdateExpression          string
	KeyConditionExpression    string
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues map[string]attribute
	ConsistentRead            bool
	Select                    string
	Limit                     int
	RequestItems              map[string][]struct {
		DeleteRequest *struct{ Key map[string]attribute }
	}
}

var (
	messagesKey = regexp.MustCompile(`^OUTBOX#MESSAGES#(\d+)$`)
	parkedKey   = regexp.MustCompile(`^OUTBOX#PARKED#(\d+)$`)
	leaseKey    = regexp.MustCompile(`^LEASE#(\d{10})$`)
	placeholder = regexp.MustCompile(`#\w+`)
	removeOwner = regexp.MustCompile(`REMOVE\b.*\bOwner\b`)
	setOwner    = regexp.MustCompile(`SET\b.*\bOwner\s*=`)
)

// nameRequest says what a request is, by its X-Amz-Target and its JSON, for the
// default key names and prefix.
func nameRequest(target string, text []byte) request {
	_, operation, _ := strings.Cut(target, ".")
	r := request{bucket: -1}
	var b body
	if err := json.Unmarshal(text, &b); err != nil {
		r.kind = unknown + kind(fmt.Sprintf(": %s with %v", operation, err))
		return r
	}
	switch operation {
	case "PutItem":
		if ofRelay(b.Item) {
			r.kind = heartbeat
		}
	case "DeleteItem":
		if ofRelay(b.Key) {
			r.kind = prune
		}
	case "UpdateItem":
		r.kind, r.bucket = b.nameUpdate()
	case "Query":
		r.kind, r.bucket = b.nameQuery()
		r.strong, r.limit = b.ConsistentRead, b.Limit
	case "BatchWriteItem":
		r.kind, r.bucket = b.nameBatch()
	}
	if r.kind == "" {
		r.kind = unknown + kind(fmt.Sprintf(": %s %s", operation, text[:min(len(text), 200)]))
	}
	return r
}

func ofRelay(key map[string]attribute) bool {
	return key["PK"].S == coordinationPartition && strings.HasPrefix(key["SK"].S, "RELAY#")
}

func (b body) nameUpdate() (kind, int) {
	expression := placeholder.ReplaceAllStringFunc(b.UpdateExpression, func(name string) string {
		return b.ExpressionAttributeNames[name]
	})
	lease := leaseKey.FindStringSubmatch(b.Key["SK"].S)
	switch {
	case ofRelay(b.Key) && strings.Contains(expression, "StoppedAtUtc"):
		return stamp, -1
	case lease == nil || b.Key["PK"].S != coordinationPartition:
		return "", -1
	case removeOwner.MatchString(expression):
		return release, numberOf(lease[1])
	case setOwner.MatchString(expression):
		return claim, numberOf(lease[1])
	default:
		return keep, numberOf(lease[1])
	}
}

func (b body) nameQuery() (kind, int) {
	for _, value := range b.ExpressionAttributeValues {
		if value.S == coordinationPartition {
			return coordination, -1
		}
		if key := messagesKey.FindStringSubmatch(value.S); key != nil {
			switch {
			case b.Select == "COUNT" && b.ConsistentRead:
				return probe, numberOf(key[1])
			case b.Select == "COUNT" && b.Limit == 1:
				return discovery, numberOf(key[1])
			case !b.ConsistentRead:
				return backlog, numberOf(key[1])
			default:
				return fetch, numberOf(key[1])
			}
		}
		if key := parkedKey.FindStringSubmatch(value.S); key != nil {
			switch {
			case !b.ConsistentRead:
				return backlog, numberOf(key[1])
			case b.ExpressionAttributeValues[":rows"].S == "ROW#" && strings.Contains(b.KeyConditionExpression, "< :rows"):
				return markers, numberOf(key[1])
			}
		}
	}
	return "", -1
}

// nameBatch is a delete when nothing but messages of one bucket are deleted.
func (b body) nameBatch() (kind, int) {
	bucket := -1
	for _, writes := range b.RequestItems {
		for _, write := range writes {
			if write.DeleteRequest == nil {
				return "", -1
			}
			key := messagesKey.FindStringSubmatch(write.DeleteRequest.Key["PK"].S)
			if key == nil || bucket >= 0 && numberOf(key[1]) != bucket {
				return "", -1
			}
			bucket = numberOf(key[1])
		}
	}
	if bucket < 0 {
		return "", -1
	}
	return deletion, bucket
}

// numberOf is a number that an expression has matched.
func numberOf(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return -1
	}
	return n
}
