package kafka

import (
	"testing"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// What an operator is told to do follows from the kind: a missing permission is no
// outage, and a missing topic neither.
func TestTroublesAreToldApartByTheirCodes(t *testing.T) {
	for kind, codes := range map[TroubleKind][]ck.ErrorCode{
		Missing: {ck.ErrUnknownTopicOrPart, ck.ErrUnknownTopic},
		Denied: {ck.ErrTopicAuthorizationFailed, ck.ErrClusterAuthorizationFailed, ck.ErrTransactionalIDAuthorizationFailed,
			ck.ErrSaslAuthenticationFailed, ck.ErrAuthentication},
		Unsupported: {ck.ErrUnsupportedVersion, ck.ErrUnsupportedFeature},
		Unanswered:  {ck.ErrTimedOut, ck.ErrTransport, ck.ErrAllBrokersDown, ck.ErrResolve, ck.ErrSsl},
		Invalid:     {ck.ErrTopicException},
		Refused:     {ck.ErrInvalidRequest, ck.ErrUnknown, ck.ErrorCode(9999)},
	} {
		for _, code := range codes {
			got := troubleOf(code)
			if got.Kind != kind || got.Code == "" || got.Text == "" {
				t.Errorf("%v: %+v, want kind %s", code, got, kind)
			}
		}
	}
}
