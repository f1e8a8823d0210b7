package outbox

// Names of the attributes of all items of an outbox (protocol, sections 1 and 7). Several are reserved
// words of DynamoDB, so expressions name them through placeholders. The names of the two key attributes
// are configurable and live in Schema.
const (
	// Of a message, and of a row set aside.
	AttrMessageId    = "MessageId"    // S, GUID in lower case with hyphens
	AttrTopic        = "Topic"        // S; also of a KEY# item
	AttrKey          = "Key"          // B, absent: keyless
	AttrValue        = "Value"        // B, absent: tombstone
	AttrHeaders      = "Headers"      // B, see EncodeHeaders; absent: none
	AttrPartition    = "Partition"    // N, absent: chosen by key
	AttrCreatedAtUtc = "CreatedAtUtc" // N, ticks
	AttrBucketCount  = "BucketCount"  // N, the writer's count; absent: not checked

	// Of a sequence.
	AttrSequence = "Sequence" // N, the last number handed out

	// Of a lease.
	AttrOwner          = "Owner"          // S, relay id; absent: free
	AttrExpiresAtUtc   = "ExpiresAtUtc"   // N, ticks
	AttrIncarnation    = "Incarnation"    // S, which start of the owner; also of a relay
	AttrClaim          = "Claim"          // N, which tenure of that incarnation
	AttrAttention      = "Attention"      // N, ticks: an operator rang
	AttrPausedUntilUtc = "PausedUntilUtc" // N, ticks
	AttrPausedBy       = "PausedBy"       // S
	AttrPauseReason    = "PauseReason"    // S

	// Of a relay.
	AttrLastSeenUtc  = "LastSeenUtc"  // N, ticks
	AttrStoppedAtUtc = "StoppedAtUtc" // N, ticks; absent: not stopped
	AttrMode         = "Mode"         // S

	// Of the marker of a topic or key set aside.
	AttrReason      = "Reason"      // S
	AttrAttempts    = "Attempts"    // N
	AttrParkedAtUtc = "ParkedAtUtc" // N, ticks
	AttrRetryAtUtc  = "RetryAtUtc"  // N, ticks
)

// MessageAttributes are the names of all attributes that a message may have, besides its keys.
func MessageAttributes() []string {
	return []string{AttrMessageId, AttrTopic, AttrKey, AttrValue, AttrHeaders, AttrPartition, AttrCreatedAtUtc, AttrBucketCount}
}

// Attributes are the names of all attributes that items of an outbox may have, besides their keys. A key
// attribute may be named like none of them.
func Attributes() []string {
	return append(MessageAttributes(),
		AttrSequence,
		AttrOwner, AttrExpiresAtUtc, AttrIncarnation, AttrClaim, AttrAttention,
		AttrPausedUntilUtc, AttrPausedBy, AttrPauseReason,
		AttrLastSeenUtc, AttrStoppedAtUtc, AttrMode,
		AttrReason, AttrAttempts, AttrParkedAtUtc, AttrRetryAtUtc,
	)
}
