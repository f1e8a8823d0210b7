package kafka

import (
	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/bucketbrigade/relay/actors/publisher"
)

// class is what one code of librdkafka means for a record.
type class struct {
	code   ck.ErrorCode
	name   string // librdkafka's name for it; a leading underscore marks the client's own codes
	class  publisher.Class
	reason string // why this class, for people
}

// classes has every code that a producer can report, and what becomes of the
// record (design, section 5). The text of an error is never looked at.
//
// The lines were drawn by what a wrong guess costs. A code classed Rejected by
// mistake sets innocent rows aside, so only what the record itself can be blamed
// for is there; an outage, a missing topic and a missing permission never are.
// A code classed Retriable by mistake says "not appended" of a record that may
// have been: so whatever could follow an attempt that left the client is
// Ambiguous. Neither loses a row: both keep it.
func classes() []class {
	return []class{
		// The record itself. It counts against the record only when it was alone in its request,
		// which the publisher knows.
		{ck.ErrMsgSizeTooLarge, "MSG_SIZE_TOO_LARGE", publisher.Rejected, "larger than message.max.bytes (client) or the topic's max.message.bytes (broker); no retry shrinks it"},
		{ck.ErrRecordListTooLarge, "RECORD_LIST_TOO_LARGE", publisher.Rejected, "larger than a segment of the topic; no retry shrinks it"},
		{ck.ErrInvalidMsg, "INVALID_MSG", publisher.Rejected, "corrupt, or without a key on a compacted topic: the broker read it and will not have it"},
		{ck.ErrInvalidRecord, "INVALID_RECORD", publisher.Rejected, "the broker's validation refused it"},
		{ck.ErrTopicException, "TOPIC_EXCEPTION", publisher.Rejected, "the topic's name is illegal or reserved: nobody can create it"},
		// Not appended, and not the record's fault: topics, leaders, permissions, configuration.
		{ck.ErrInvalidDifferentRecord, "_INVALID_DIFFERENT_RECORD", publisher.Retriable, "another record of the same request was invalid"},
		{ck.ErrUnknownTopicOrPart, "UNKNOWN_TOPIC_OR_PART", publisher.Retriable, "the topic or partition does not exist yet, or not any more"},
		{ck.ErrUnknownTopic, "_UNKNOWN_TOPIC", publisher.Retriable, "the client knows no such topic; a refresh may"},
		{ck.ErrUnknownPartition, "_UNKNOWN_PARTITION", publisher.Retriable, "the client knows no such partition; a refresh may"},
		{ck.ErrUnknownTopicID, "UNKNOWN_TOPIC_ID", publisher.Retriable, "the topic was created again under another id"},
		{ck.ErrLeaderNotAvailable, "LEADER_NOT_AVAILABLE", publisher.Retriable, "the partition elects a leader"},
		{ck.ErrNotLeaderForPartition, "NOT_LEADER_FOR_PARTITION", publisher.Retriable, "the leader moved"},
		{ck.ErrFencedLeaderEpoch, "FENCED_LEADER_EPOCH", publisher.Retriable, "the leader moved, and the client knew an older one"},
		{ck.ErrUnknownLeaderEpoch, "UNKNOWN_LEADER_EPOCH", publisher.Retriable, "the leader moved, and the broker is behind"},
		{ck.ErrPreferredLeaderNotAvailable, "PREFERRED_LEADER_NOT_AVAILABLE", publisher.Retriable, "the partition has no leader at present"},
		{ck.ErrEligibleLeadersNotAvailable, "ELIGIBLE_LEADERS_NOT_AVAILABLE", publisher.Retriable, "the partition has no leader at present"},
		{ck.ErrBrokerNotAvailable, "BROKER_NOT_AVAILABLE", publisher.Retriable, "the broker is away"},
		{ck.ErrReplicaNotAvailable, "REPLICA_NOT_AVAILABLE", publisher.Retriable, "the replica is away"},
		{ck.ErrListenerNotFound, "LISTENER_NOT_FOUND", publisher.Retriable, "the leader has no listener of the client's kind at present"},
		{ck.ErrReassignmentInProgress, "REASSIGNMENT_IN_PROGRESS", publisher.Retriable, "the partition is being moved"},
		{ck.ErrNotEnoughReplicas, "NOT_ENOUGH_REPLICAS", publisher.Retriable, "refused before the append: too few replicas in sync"},
		{ck.ErrIsrInsuff, "_ISR_INSUFF", publisher.Retriable, "the client saw too few replicas in sync and did not send"},
		{ck.ErrThrottlingQuotaExceeded, "THROTTLING_QUOTA_EXCEEDED", publisher.Retriable, "over a quota; later it is not"},
		{ck.ErrTopicAuthorizationFailed, "TOPIC_AUTHORIZATION_FAILED", publisher.Retriable, "a permission is missing; an operator grants it"},
		{ck.ErrClusterAuthorizationFailed, "CLUSTER_AUTHORIZATION_FAILED", publisher.Retriable, "a permission is missing; an operator grants it"},
		{ck.ErrTransactionalIDAuthorizationFailed, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", publisher.Retriable, "a permission is missing; an operator grants it"},
		{ck.ErrSaslAuthenticationFailed, "SASL_AUTHENTICATION_FAILED", publisher.Retriable, "credentials are wrong; an operator repairs them"},
		{ck.ErrAuthentication, "_AUTHENTICATION", publisher.Retriable, "credentials are wrong; an operator repairs them"},
		{ck.ErrUnsupportedSaslMechanism, "UNSUPPORTED_SASL_MECHANISM", publisher.Retriable, "the security settings do not fit the broker"},
		{ck.ErrIllegalSaslState, "ILLEGAL_SASL_STATE", publisher.Retriable, "the security settings do not fit the broker"},
		{ck.ErrSecurityDisabled, "SECURITY_DISABLED", publisher.Retriable, "the security settings do not fit the broker"},
		{ck.ErrSsl, "_SSL", publisher.Retriable, "the TLS settings do not fit the broker"},
		{ck.ErrResolve, "_RESOLVE", publisher.Retriable, "the broker's host name does not resolve"},
		{ck.ErrAllBrokersDown, "_ALL_BROKERS_DOWN", publisher.Retriable, "no connection to any broker"},
		{ck.ErrUnknownBroker, "_UNKNOWN_BROKER", publisher.Retriable, "the broker left the cluster"},
		{ck.ErrNodeUpdate, "_NODE_UPDATE", publisher.Retriable, "the broker's address changed under the request"},
		{ck.ErrWaitCache, "_WAIT_CACHE", publisher.Retriable, "the client waits for metadata"},
		{ck.ErrWaitCoord, "_WAIT_COORD", publisher.Retriable, "the client waits for the coordinator"},
		{ck.ErrQueueFull, "_QUEUE_FULL", publisher.Retriable, "the client's queue is full; it drains"},
		{ck.ErrRetry, "_RETRY", publisher.Retriable, "the client itself asks for another attempt"},
		{ck.ErrInvalidArg, "_INVALID_ARG", publisher.Retriable, "the client refused the call and sent nothing; the relay is wrong, not the record"},
		{ck.ErrState, "_STATE", publisher.Retriable, "the producer is closed, or its transaction is in another state; nothing was sent"},
		{ck.ErrConflict, "_CONFLICT", publisher.Retriable, "another operation of the producer excludes this one; nothing was sent"},
		{ck.ErrPrevInProgress, "_PREV_IN_PROGRESS", publisher.Retriable, "an earlier operation of the producer runs still; nothing was sent"},
		{ck.ErrNotConfigured, "_NOT_CONFIGURED", publisher.Retriable, "a setting is missing; nothing was sent"},
		{ck.ErrNotImplemented, "_NOT_IMPLEMENTED", publisher.Retriable, "the client cannot do this; nothing was sent"},
		{ck.ErrUnsupportedFeature, "_UNSUPPORTED_FEATURE", publisher.Retriable, "the broker is too old for this request"},
		{ck.ErrUnsupportedVersion, "UNSUPPORTED_VERSION", publisher.Retriable, "the broker is too old for this request"},
		{ck.ErrUnsupportedForMessageFormat, "UNSUPPORTED_FOR_MESSAGE_FORMAT", publisher.Retriable, "the topic's message format is too old; an operator raises it"},
		{ck.ErrUnsupportedCompressionType, "UNSUPPORTED_COMPRESSION_TYPE", publisher.Retriable, "the compression setting does not fit the broker"},
		{ck.ErrInvalidRequiredAcks, "INVALID_REQUIRED_ACKS", publisher.Retriable, "a setting does not fit the broker"},
		{ck.ErrInvalidRequest, "INVALID_REQUEST", publisher.Retriable, "the broker does not understand the request, whatever the record is"},
		{ck.ErrInvalidConfig, "INVALID_CONFIG", publisher.Retriable, "the topic's configuration is invalid"},
		{ck.ErrPolicyViolation, "POLICY_VIOLATION", publisher.Retriable, "a policy of the cluster forbids it; policies belong to operators, not to records"},
		{ck.ErrInvalidTimestamp, "INVALID_TIMESTAMP", publisher.Retriable, "record time is the publish time, so a clock is wrong, not the record"},
		{ck.ErrCoordinatorLoadInProgress, "COORDINATOR_LOAD_IN_PROGRESS", publisher.Retriable, "the transaction coordinator starts"},
		{ck.ErrCoordinatorNotAvailable, "COORDINATOR_NOT_AVAILABLE", publisher.Retriable, "the transaction coordinator is away"},
		{ck.ErrNotCoordinator, "NOT_COORDINATOR", publisher.Retriable, "the transaction coordinator moved"},
		{ck.ErrTransactionCoordinatorFenced, "TRANSACTION_COORDINATOR_FENCED", publisher.Retriable, "the transaction coordinator moved"},
		{ck.ErrConcurrentTransactions, "CONCURRENT_TRANSACTIONS", publisher.Retriable, "the previous transaction is being completed"},
		{ck.ErrOperationNotAttempted, "OPERATION_NOT_ATTEMPTED", publisher.Retriable, "another part of the request failed first"},
		{ck.ErrStaleCtrlEpoch, "STALE_CTRL_EPOCH", publisher.Retriable, "the controller moved"},
		{ck.ErrStaleBrokerEpoch, "STALE_BROKER_EPOCH", publisher.Retriable, "the broker was restarted"},
		{ck.ErrNotController, "NOT_CONTROLLER", publisher.Retriable, "the controller moved"},
		{ck.ErrRebootstrapRequired, "REBOOTSTRAP_REQUIRED", publisher.Retriable, "the client's metadata is stale; it starts again from the bootstrap brokers"},
		// It may have been appended.
		{ck.ErrMsgTimedOut, "_MSG_TIMED_OUT", publisher.Ambiguous, "an attempt may have been sent before the timeout"},
		{ck.ErrTimedOut, "_TIMED_OUT", publisher.Ambiguous, "an attempt may have been sent before the timeout"},
		{ck.ErrTimedOutQueue, "_TIMED_OUT_QUEUE", publisher.Ambiguous, "an earlier attempt may have been sent"},
		{ck.ErrPurgeInflight, "_PURGE_INFLIGHT", publisher.Ambiguous, "sent, then purged: its answer is not awaited"},
		{ck.ErrPurgeQueue, "_PURGE_QUEUE", publisher.Ambiguous, "purged before sending, but an earlier attempt may have been sent"},
		{ck.ErrTransport, "_TRANSPORT", publisher.Ambiguous, "the connection broke after the request may have left"},
		{ck.ErrFail, "_FAIL", publisher.Ambiguous, "the connection broke after the request may have left"},
		{ck.ErrNetworkException, "NETWORK_EXCEPTION", publisher.Ambiguous, "the connection broke before the answer"},
		{ck.ErrRequestTimedOut, "REQUEST_TIMED_OUT", publisher.Ambiguous, "appended by the leader, perhaps not by its followers"},
		{ck.ErrNotEnoughReplicasAfterAppend, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", publisher.Ambiguous, "appended by the leader, not by enough followers"},
		{ck.ErrKafkaStorageError, "KAFKA_STORAGE_ERROR", publisher.Ambiguous, "a disk failed in the middle"},
		{ck.ErrLogDirNotFound, "LOG_DIR_NOT_FOUND", publisher.Ambiguous, "a disk failed in the middle"},
		{ck.ErrUnknown, "UNKNOWN", publisher.Ambiguous, "the broker does not say what happened"},
		{ck.ErrDuplicateSequenceNumber, "DUPLICATE_SEQUENCE_NUMBER", publisher.Ambiguous, "the broker says that it has this record already"},
		{ck.ErrBadMsg, "_BAD_MSG", publisher.Ambiguous, "the answer could not be read"},
		{ck.ErrUnderflow, "_UNDERFLOW", publisher.Ambiguous, "the answer ended too early"},
		{ck.ErrPartial, "_PARTIAL", publisher.Ambiguous, "the answer ended too early"},
		{ck.ErrDestroy, "_DESTROY", publisher.Ambiguous, "the producer was closed before the answer"},
		{ck.ErrDestroyBroker, "_DESTROY_BROKER", publisher.Ambiguous, "the connection was closed before the answer"},
		{ck.ErrCritSysResource, "_CRIT_SYS_RESOURCE", publisher.Ambiguous, "the process is out of memory or threads"},
		{ck.ErrIntr, "_INTR", publisher.Ambiguous, "interrupted before the answer"},
		{ck.ErrOutdated, "_OUTDATED", publisher.Ambiguous, "the answer came for an earlier state of the producer"},
		{ck.ErrInProgress, "_IN_PROGRESS", publisher.Ambiguous, "the operation runs still"},
		{ck.ErrApplication, "_APPLICATION", publisher.Ambiguous, "raised by a plug-in of the client"},
		// The producer is unusable.
		{ck.ErrFatal, "_FATAL", publisher.Fatal, "an earlier fatal error of this producer"},
		{ck.ErrGaplessGuarantee, "_GAPLESS_GUARANTEE", publisher.Fatal, "a record failed, and going on would leave a gap in the order"},
		{ck.ErrInconsistent, "_INCONSISTENT", publisher.Fatal, "the client lost track of its sequence numbers"},
		{ck.ErrOutOfOrderSequenceNumber, "OUT_OF_ORDER_SEQUENCE_NUMBER", publisher.Fatal, "the broker misses a record of this producer"},
		{ck.ErrUnknownProducerID, "UNKNOWN_PRODUCER_ID", publisher.Fatal, "the broker has forgotten this producer"},
		{ck.ErrInvalidTxnState, "INVALID_TXN_STATE", publisher.Fatal, "the broker's transaction is in another state"},
		{ck.ErrInvalidProducerIDMapping, "INVALID_PRODUCER_ID_MAPPING", publisher.Fatal, "the transactional id has another producer id by now"},
		{ck.ErrInvalidTransactionTimeout, "INVALID_TRANSACTION_TIMEOUT", publisher.Fatal, "transaction.timeout.ms is over the broker's limit"},
		// Another producer has taken over.
		{ck.ErrFenced, "_FENCED", publisher.Fenced, "a newer producer with this transactional id exists"},
		{ck.ErrProducerFenced, "PRODUCER_FENCED", publisher.Fenced, "a newer producer with this transactional id exists"},
		{ck.ErrInvalidProducerEpoch, "INVALID_PRODUCER_EPOCH", publisher.Fenced, "a newer epoch of this producer id exists"},
	}
}
