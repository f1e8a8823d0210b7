package telemetry

import (
	"github.com/rs/zerolog"

	"github.com/bucketbrigade/relay/event"
)

// asideLines are those of what is set aside, and of letters.
func asideLines() []line {
	return []line{
		on(zerolog.ErrorLevel, "A record is rejected for good: its key is set aside.",
			func(f facts, e event.RecordParked) {
				f.bucket(e.Bucket)
				f.sequence(e.Sequence)
				f.text("messageId", e.Message)
				f.text("topic", e.Topic)
				f.text("keyId", e.KeyID)
				f.text("reason", e.Reason)
				f.number("attempts", e.Attempts)
			}),
		on(zerolog.DebugLevel, "Rows of keys that are set aside were moved.",
			func(f facts, e event.RowsMoved) {
				f.bucket(e.Bucket)
				f.number("rows", e.Rows)
				f.Int64("last", e.Last)
			}),
		on(zerolog.WarnLevel, "Setting rows aside, or ending that, did not succeed: it is tried again.",
			func(f facts, e event.MoveFailed) {
				f.bucket(e.Bucket)
				f.text("request", e.Request)
				f.text("refusal", e.Refusal)
				f.err(e.Err)
			}),
		on(zerolog.InfoLevel, "Keys or topics of the bucket are set aside.",
			func(f facts, e event.MarkersRead) {
				f.bucket(e.Bucket)
				f.number("keys", e.Keys)
				f.number("topics", e.Topics)
			}),
		on(zerolog.WarnLevel, "Topics are paused by an operator: their messages are set aside.",
			func(f facts, e event.TopicsPaused) {
				f.bucket(e.Bucket)
				paused := make([]string, len(e.Topics))
				for i, t := range e.Topics {
					p := Pause{Until: Moment(t.Until), By: t.By, Reason: t.Reason}
					paused[i] = t.Topic + ": " + p.text()
				}
				f.Strs("paused", paused)
			}),
		on(zerolog.DebugLevel, "No topic of the bucket is paused any more.",
			func(f facts, e event.TopicsResumed) { f.bucket(e.Bucket) }),
		on(zerolog.InfoLevel, "A key's rows that were set aside are delivered.",
			func(f facts, e event.KeyRetried) { f.key(e.Bucket, e.KeyID, e.Topic) }),
		on(zerolog.ErrorLevel, "A record is rejected again: its key stays set aside.",
			func(f facts, e event.RetryRejected) {
				f.key(e.Bucket, e.KeyID, e.Topic)
				f.sequence(e.Sequence)
				f.text("reason", e.Reason)
			}),
		on(zerolog.InfoLevel, "Nothing is left of a key that was set aside.",
			func(f facts, e event.KeyCleared) { f.key(e.Bucket, e.KeyID, e.Topic) }),
		on(zerolog.InfoLevel, "A topic is not set aside any more.",
			func(f facts, e event.TopicRetried) {
				f.bucket(e.Bucket)
				f.text("topic", e.Topic)
			}),
		on(zerolog.WarnLevel, "A rejected record is in the dead-letter topic.",
			func(f facts, e event.LetterPublished) {
				f.bucket(e.Bucket)
				f.sequence(e.Sequence)
				f.text("messageId", e.Message)
				f.text("topic", e.Topic)
				f.text("letterTopic", e.LetterTopic)
				f.text("reason", e.Reason)
			}),
	}
}

// key is the facts of a key that is set aside.
func (f facts) key(bucket int, keyID, topic string) {
	f.bucket(bucket)
	f.text("keyId", keyID)
	f.text("topic", topic)
}
