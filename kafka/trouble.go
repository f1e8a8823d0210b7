package kafka

import (
	"fmt"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// Trouble is why a question to a cluster has no answer, or a bad one.
type Trouble struct {
	Kind TroubleKind
	Code string // librdkafka's name; a leading underscore marks the client's own codes
	Text string // for people; no secrets
}

// TroubleKind is what a Trouble means for who asked.
type TroubleKind string

// The kinds.
const (
	Missing     TroubleKind = "missing"     // what was asked about does not exist
	Denied      TroubleKind = "denied"      // credentials are wrong, or a permission is missing
	Unsupported TroubleKind = "unsupported" // the brokers do not know this request
	Unanswered  TroubleKind = "unanswered"  // no answer, and perhaps no connection
	Invalid     TroubleKind = "invalid"     // no cluster could have such a name
	Refused     TroubleKind = "refused"     // any other answer
)

// Error implements error.
func (t *Trouble) Error() string { return fmt.Sprintf("%s: %s", t.Code, t.Text) }

// troubleOf is the one place where a code becomes a kind.
func troubleOf(code ck.ErrorCode) *Trouble {
	name := newCodebook().classify(code).name
	t := &Trouble{Kind: Refused, Code: name, Text: code.String()}
	switch code {
	case ck.ErrUnknownTopicOrPart, ck.ErrUnknownTopic, ck.ErrUnknownPartition, ck.ErrUnknownTopicID:
		t.Kind = Missing
	case ck.ErrTopicAuthorizationFailed, ck.ErrClusterAuthorizationFailed, ck.ErrGroupAuthorizationFailed,
		ck.ErrTransactionalIDAuthorizationFailed, ck.ErrSaslAuthenticationFailed, ck.ErrAuthentication,
		ck.ErrUnsupportedSaslMechanism, ck.ErrIllegalSaslState, ck.ErrSecurityDisabled:
		t.Kind = Denied
	case ck.ErrUnsupportedFeature, ck.ErrUnsupportedVersion, ck.ErrNotImplemented:
		t.Kind = Unsupported
	case ck.ErrTimedOut, ck.ErrTimedOutQueue, ck.ErrTransport, ck.ErrAllBrokersDown, ck.ErrResolve, ck.ErrSsl, ck.ErrFail,
		ck.ErrRequestTimedOut, ck.ErrNetworkException, ck.ErrBrokerNotAvailable, ck.ErrUnknownBroker, ck.ErrDestroy, ck.ErrDestroyBroker:
		t.Kind = Unanswered
	case ck.ErrTopicException:
		t.Kind = Invalid
	}
	return t
}
