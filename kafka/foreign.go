package kafka

import (
	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/bucketbrigade/relay/actors/publisher"
)

// foreignReason is the reason of every code in foreign.
const foreignReason = "not an answer to a producer; taken as if it may have been appended"

// foreign has the codes of librdkafka 2.11.1 that belong to consumers, groups,
// administration and delegation tokens. No produce request is answered with
// them. Should a broker do so all the same, the record may have been appended.
func foreign() []class {
	names := []struct {
		code ck.ErrorCode
		name string
	}{
		{ck.ErrBadCompression, "_BAD_COMPRESSION"},
		{ck.ErrPartitionEOF, "_PARTITION_EOF"},
		{ck.ErrFs, "_FS"},
		{ck.ErrUnknownGroup, "_UNKNOWN_GROUP"},
		{ck.ErrExistingSubscription, "_EXISTING_SUBSCRIPTION"},
		{ck.ErrAssignPartitions, "_ASSIGN_PARTITIONS"},
		{ck.ErrRevokePartitions, "_REVOKE_PARTITIONS"},
		{ck.ErrUnknownProtocol, "_UNKNOWN_PROTOCOL"},
		{ck.ErrNoOffset, "_NO_OFFSET"},
		{ck.ErrKeySerialization, "_KEY_SERIALIZATION"},
		{ck.ErrValueSerialization, "_VALUE_SERIALIZATION"},
		{ck.ErrKeyDeserialization, "_KEY_DESERIALIZATION"},
		{ck.ErrValueDeserialization, "_VALUE_DESERIALIZATION"},
		{ck.ErrReadOnly, "_READ_ONLY"},
		{ck.ErrNoent, "_NOENT"},
		{ck.ErrInvalidType, "_INVALID_TYPE"},
		{ck.ErrMaxPollExceeded, "_MAX_POLL_EXCEEDED"},
		{ck.ErrAssignmentLost, "_ASSIGNMENT_LOST"},
		{ck.ErrNoop, "_NOOP"},
		{ck.ErrAutoOffsetReset, "_AUTO_OFFSET_RESET"},
		{ck.ErrLogTruncation, "_LOG_TRUNCATION"},
		{ck.ErrOffsetOutOfRange, "OFFSET_OUT_OF_RANGE"},
		{ck.ErrInvalidMsgSize, "INVALID_MSG_SIZE"},
		{ck.ErrOffsetMetadataTooLarge, "OFFSET_METADATA_TOO_LARGE"},
		{ck.ErrIllegalGeneration, "ILLEGAL_GENERATION"},
		{ck.ErrInconsistentGroupProtocol, "INCONSISTENT_GROUP_PROTOCOL"},
		{ck.ErrInvalidGroupID, "INVALID_GROUP_ID"},
		{ck.ErrUnknownMemberID, "UNKNOWN_MEMBER_ID"},
		{ck.ErrInvalidSessionTimeout, "INVALID_SESSION_TIMEOUT"},
		{ck.ErrRebalanceInProgress, "REBALANCE_IN_PROGRESS"},
		{ck.ErrInvalidCommitOffsetSize, "INVALID_COMMIT_OFFSET_SIZE"},
		{ck.ErrGroupAuthorizationFailed, "GROUP_AUTHORIZATION_FAILED"},
		{ck.ErrTopicAlreadyExists, "TOPIC_ALREADY_EXISTS"},
		{ck.ErrInvalidPartitions, "INVALID_PARTITIONS"},
		{ck.ErrInvalidReplicationFactor, "INVALID_REPLICATION_FACTOR"},
		{ck.ErrInvalidReplicaAssignment, "INVALID_REPLICA_ASSIGNMENT"},
		{ck.ErrDelegationTokenAuthDisabled, "DELEGATION_TOKEN_AUTH_DISABLED"},
		{ck.ErrDelegationTokenNotFound, "DELEGATION_TOKEN_NOT_FOUND"},
		{ck.ErrDelegationTokenOwnerMismatch, "DELEGATION_TOKEN_OWNER_MISMATCH"},
		{ck.ErrDelegationTokenRequestNotAllowed, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"},
		{ck.ErrDelegationTokenAuthorizationFailed, "DELEGATION_TOKEN_AUTHORIZATION_FAILED"},
		{ck.ErrDelegationTokenExpired, "DELEGATION_TOKEN_EXPIRED"},
		{ck.ErrInvalidPrincipalType, "INVALID_PRINCIPAL_TYPE"},
		{ck.ErrNonEmptyGroup, "NON_EMPTY_GROUP"},
		{ck.ErrGroupIDNotFound, "GROUP_ID_NOT_FOUND"},
		{ck.ErrFetchSessionIDNotFound, "FETCH_SESSION_ID_NOT_FOUND"},
		{ck.ErrInvalidFetchSessionEpoch, "INVALID_FETCH_SESSION_EPOCH"},
		{ck.ErrTopicDeletionDisabled, "TOPIC_DELETION_DISABLED"},
		{ck.ErrOffsetNotAvailable, "OFFSET_NOT_AVAILABLE"},
		{ck.ErrMemberIDRequired, "MEMBER_ID_REQUIRED"},
		{ck.ErrGroupMaxSizeReached, "GROUP_MAX_SIZE_REACHED"},
		{ck.ErrFencedInstanceID, "FENCED_INSTANCE_ID"},
		{ck.ErrElectionNotNeeded, "ELECTION_NOT_NEEDED"},
		{ck.ErrNoReassignmentInProgress, "NO_REASSIGNMENT_IN_PROGRESS"},
		{ck.ErrGroupSubscribedToTopic, "GROUP_SUBSCRIBED_TO_TOPIC"},
		{ck.ErrUnstableOffsetCommit, "UNSTABLE_OFFSET_COMMIT"},
		{ck.ErrResourceNotFound, "RESOURCE_NOT_FOUND"},
		{ck.ErrDuplicateResource, "DUPLICATE_RESOURCE"},
		{ck.ErrUnacceptableCredential, "UNACCEPTABLE_CREDENTIAL"},
		{ck.ErrInconsistentVoterSet, "INCONSISTENT_VOTER_SET"},
		{ck.ErrInvalidUpdateVersion, "INVALID_UPDATE_VERSION"},
		{ck.ErrFeatureUpdateFailed, "FEATURE_UPDATE_FAILED"},
		{ck.ErrPrincipalDeserializationFailure, "PRINCIPAL_DESERIALIZATION_FAILURE"},
		{ck.ErrFencedMemberEpoch, "FENCED_MEMBER_EPOCH"},
		{ck.ErrUnreleasedInstanceID, "UNRELEASED_INSTANCE_ID"},
		{ck.ErrUnsupportedAssignor, "UNSUPPORTED_ASSIGNOR"},
		{ck.ErrStaleMemberEpoch, "STALE_MEMBER_EPOCH"},
		{ck.ErrUnknownSubscriptionID, "UNKNOWN_SUBSCRIPTION_ID"},
		{ck.ErrTelemetryTooLarge, "TELEMETRY_TOO_LARGE"},
	}
	rows := make([]class, len(names))
	for i, n := range names {
		rows[i] = class{n.code, n.name, publisher.Ambiguous, foreignReason}
	}
	return rows
}
