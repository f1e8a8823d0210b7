package telemetry

import (
	"github.com/rs/zerolog"

	"github.com/bucketbrigade/relay/event"
)

// publishLines are those of records, and of the brokers that they go to.
func publishLines() []line {
	return []line{
		on(zerolog.TraceLevel, "A record is acknowledged.",
			func(f facts, e event.RecordAcknowledged) {
				f.bucket(e.Bucket)
				f.sequence(e.Sequence)
				f.text("topic", e.Topic)
				f.duration("lag", e.Lag)
			}),
		on(zerolog.TraceLevel, "A batch has an outcome for each of its rows.",
			func(f facts, e event.BatchPublished) {
				f.bucket(e.Bucket)
				f.number("rows", e.Rows)
				f.number("acknowledged", e.Acknowledged)
				f.duration("took", e.Took)
			}),
		on(zerolog.TraceLevel, "A batch has an outcome, and its messages belong to traces.",
			func(f facts, e event.BatchTraced) {
				f.bucket(e.Bucket)
				f.number("rows", e.Batch.Rows)
				f.number("acknowledged", e.Batch.Acknowledged)
				f.duration("took", e.Batch.Took)
				f.text("topic", e.Topic)
				f.number("traces", len(e.Traces))
				f.number("unlinked", e.Unlinked)
				f.text("class", e.Class)
				f.text("code", e.Code)
			}),
		at(on(zerolog.ErrorLevel, "A record is rejected for its own sake.",
			func(f facts, e event.RecordRejected) {
				f.bucket(e.Bucket)
				f.sequence(e.Sequence)
				f.text("messageId", e.Message)
				f.text("topic", e.Topic)
				f.text("code", e.Code)
				f.Bool("alone", e.Alone)
			}),
			func(e event.RecordRejected) zerolog.Level {
				if e.Alone {
					return zerolog.ErrorLevel
				}
				return zerolog.DebugLevel // a neighbour of the guilty one, most likely
			}),
		on(zerolog.WarnLevel, "Rows came back without an acknowledgement: they are published again.",
			func(f facts, e event.PublishFailed) {
				f.bucket(e.Bucket)
				f.number("rows", e.Rows)
				f.text("topic", e.Topic)
				f.text("class", e.Class)
				f.text("code", e.Code)
			}),
		on(zerolog.DebugLevel, "The bucket's rows are acknowledged again.",
			func(f facts, e event.PublishRecovered) {
				f.bucket(e.Bucket)
				f.duration("after", e.After)
			}),
		on(zerolog.ErrorLevel, "No broker answers.",
			func(f facts, e event.BrokerUnreachable) { f.text("reason", e.Reason) }),
		on(zerolog.DebugLevel, "A broker answers.",
			func(f facts, e event.BrokerReached) { f.duration("after", e.After) }),
	}
}

// producerLines are those of the clients that publish.
func producerLines() []line {
	return []line{
		on(zerolog.DebugLevel, "The bucket's fence is taken: earlier producers of it are refused.",
			func(f facts, e event.FenceTaken) {
				f.bucket(e.Bucket)
				f.number("producer", e.Producer)
				f.duration("took", e.Took)
			}),
		on(zerolog.WarnLevel, "The bucket's fence is not taken: nothing of it is published until it is.",
			func(f facts, e event.FenceFailed) {
				f.bucket(e.Bucket)
				f.text("code", e.Code)
			}),
		on(zerolog.DebugLevel, "A transaction was aborted: its rows are published again.",
			func(f facts, e event.TransactionAborted) {
				f.bucket(e.Bucket)
				f.number("rows", e.Rows)
				f.text("code", e.Code)
			}),
		on(zerolog.DebugLevel, "A producer was opened.",
			func(f facts, e event.ProducerOpened) {
				f.number("producer", e.Producer)
				f.Bool("careful", e.Careful)
			}),
		on(zerolog.WarnLevel, "A producer met a fatal error and is swapped for a new one.",
			func(f facts, e event.ProducerFailed) {
				f.number("producer", e.Producer)
				f.text("code", e.Code)
				f.number("outstanding", e.Outstanding)
			}),
		at(on(zerolog.InfoLevel, "A producer is retired.",
			func(f facts, e event.ProducerRetired) {
				f.number("producer", e.Producer)
				f.text("reason", e.Reason)
				f.number("outstanding", e.Outstanding)
			}),
			func(e event.ProducerRetired) zerolog.Level {
				if e.Outstanding > 0 {
					return zerolog.WarnLevel // late copies may still be appended
				}
				return zerolog.InfoLevel
			}),
	}
}
