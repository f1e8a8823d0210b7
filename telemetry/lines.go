package telemetry

import (
	"reflect"
	"time"

	"github.com/rs/zerolog"

	"github.com/bucketbrigade/relay/event"
)

// line is how one type of event is told: its level, its one sentence, and its
// facts as fields.
type line struct {
	kind     reflect.Type
	name     string
	sentence string
	level    func(event.Event) zerolog.Level
	fields   func(facts, event.Event)
}

// on makes the line for events of type E. The level is that of most of them;
// at says otherwise.
func on[E event.Event](level zerolog.Level, sentence string, fields func(facts, E)) line {
	var zero E
	return line{
		kind:     reflect.TypeFor[E](),
		name:     zero.EventName(),
		sentence: sentence,
		level:    func(event.Event) zerolog.Level { return level },
		fields:   func(f facts, e event.Event) { fields(f, e.(E)) },
	}
}

// at lets the level depend on the event.
func at[E event.Event](l line, level func(E) zerolog.Level) line {
	l.level = func(e event.Event) zerolog.Level { return level(e.(E)) }
	return l
}

// unknownLine is for an event of a type that the table does not have. A test
// sees to it that package event has none.
func unknownLine() line {
	return line{
		sentence: "Something happened that this log has no words for.",
		level:    func(event.Event) zerolog.Level { return zerolog.DebugLevel },
		fields:   func(facts, event.Event) {},
	}
}

func lineTable() map[reflect.Type]line {
	table := map[reflect.Type]line{}
	for _, group := range [][]line{
		relayLines(), roundLines(), leaseLines(), bucketLines(), storeLines(), rowLines(), publishLines(), asideLines(), producerLines(),
	} {
		for _, l := range group {
			table[l.kind] = l
		}
	}
	return table
}

func relayLines() []line {
	return []line{
		on(zerolog.InfoLevel, "The relay has started.",
			func(f facts, e event.RelayStarted) { f.text("incarnation", e.Incarnation) }),
		on(zerolog.InfoLevel, "The relay is ready: its first round is completed.",
			func(f facts, e event.RelayReady) { f.duration("after", e.After) }),
		at(on(zerolog.InfoLevel, "The relay is stopping: it drains its buckets.",
			func(f facts, e event.RelayStopping) { f.err(e.Err) }),
			func(e event.RelayStopping) zerolog.Level { return errorIf(e.Err) }),
		at(on(zerolog.InfoLevel, "The relay has stopped.",
			func(f facts, e event.RelayStopped) {
				f.number("unreleased", e.Unreleased)
				f.err(e.Err)
			}),
			func(e event.RelayStopped) zerolog.Level {
				if e.Err == nil && e.Unreleased > 0 {
					return zerolog.WarnLevel
				}
				return errorIf(e.Err)
			}),
		on(zerolog.ErrorLevel, "The relay was replaced: a newer process runs under its id.",
			func(f facts, e event.RelayReplaced) {
				f.text("incarnation", e.Incarnation)
				f.text("replacedBy", e.By)
			}),
		on(zerolog.ErrorLevel, "The relay has withdrawn: it hands its buckets back and waits.",
			func(f facts, e event.RelayWithdrawn) {
				f.text("reason", e.Reason)
				if e.Ahead != 0 {
					f.duration("ahead", e.Ahead)
				}
			}),
		on(zerolog.WarnLevel, "The relay joins anew.",
			func(f facts, e event.RelayRenamed) {
				f.text("as", e.Relay)
				f.text("incarnation", e.Incarnation)
			}),
		on(zerolog.ErrorLevel, "The bucket count of a message is not the relay's: the relay stops.",
			func(f facts, e event.BucketCountMismatch) {
				f.bucket(e.Bucket)
				f.sequence(e.Sequence)
				f.number("stamped", e.Stamped)
				f.number("ours", e.Ours)
			}),
		on(zerolog.ErrorLevel, "An actor panicked and was stopped.",
			func(f facts, e event.ActorFailed) {
				f.text("actor", e.Actor)
				f.bucket(e.Bucket)
				f.text("reason", e.Reason)
				f.duration("pause", e.Pause)
			}),
	}
}

// roundLines are those of coordination rounds.
func roundLines() []line {
	return []line{
		on(zerolog.WarnLevel, "The relay's clock is wrong: it claims nothing.",
			func(f facts, e event.ClockSkewed) { f.duration("ahead", e.Ahead) }),
		on(zerolog.WarnLevel, "The relay's clock is right again.",
			func(f facts, e event.ClockRight) { f.duration("ahead", e.Ahead) }),
		on(zerolog.TraceLevel, "A coordination round is completed.",
			func(f facts, e event.RoundCompleted) {
				f.number("active", e.Active)
				f.number("owned", e.Owned)
				if e.StandbyRank >= 0 {
					f.number("standbyRank", e.StandbyRank)
				}
				f.duration("took", e.Took)
				if e.Ahead != 0 {
					f.duration("ahead", e.Ahead)
				}
			}),
		on(zerolog.TraceLevel, "A coordination round has read the relays and the leases.",
			func(f facts, e event.FleetSeen) {
				f.number("relays", len(e.Relays))
				f.number("leases", e.Leased())
			}),
		on(zerolog.WarnLevel, "The heartbeat was refused: the relay's record is ahead of its clock.",
			func(f facts, e event.HeartbeatRefused) { f.duration("ahead", e.Ahead) }),
		on(zerolog.DebugLevel, "The heartbeat is accepted again.",
			func(facts, event.HeartbeatAccepted) {}),
	}
}

func leaseLines() []line {
	return []line{
		on(zerolog.InfoLevel, "The bucket is claimed.",
			func(f facts, e event.BucketClaimed) {
				f.bucket(e.Bucket)
				f.Int64("claim", e.Claim)
				f.Bool("resumed", e.Resumed)
			}),
		on(zerolog.DebugLevel, "Another relay was first to claim the bucket.",
			func(f facts, e event.BucketRefused) { f.bucket(e.Bucket) }),
		on(zerolog.TraceLevel, "The bucket's lease is kept.",
			func(f facts, e event.BucketKept) {
				f.bucket(e.Bucket)
				f.duration("validFor", e.ValidFor)
			}),
		on(zerolog.DebugLevel, "A lease write has no known outcome: the next read tells.",
			func(f facts, e event.BucketUnsettled) {
				f.bucket(e.Bucket)
				f.text("request", e.Request)
				f.err(e.Err)
			}),
		on(zerolog.InfoLevel, "The bucket is released.",
			func(f facts, e event.BucketReleased) { f.bucket(e.Bucket) }),
		on(zerolog.WarnLevel, "The bucket is lost: its lease is not ours any more.",
			func(f facts, e event.BucketLost) {
				f.bucket(e.Bucket)
				f.text("owner", e.Owner)
			}),
		on(zerolog.WarnLevel, "The relay's clock is behind what it last wrote to the lease.",
			func(f facts, e event.ClockBehind) {
				f.bucket(e.Bucket)
				f.duration("behind", e.By)
			}),
		on(zerolog.DebugLevel, "The relay's clock agrees with the lease again.",
			func(f facts, e event.ClockAgreed) { f.bucket(e.Bucket) }),
		on(zerolog.ErrorLevel, "A lease item cannot be read: nobody may claim its bucket.",
			func(f facts, e event.LeaseUnreadable) {
				f.text("item", e.Item)
				f.err(e.Err)
			}),
	}
}

func bucketLines() []line {
	return []line{
		on(zerolog.WarnLevel, "The bucket is withheld: nothing is sent until its lease is kept.",
			func(f facts, e event.BucketWithheld) {
				f.bucket(e.Bucket)
				f.text("reason", e.Reason)
			}),
		on(zerolog.DebugLevel, "The bucket is worked on again.",
			func(f facts, e event.BucketResumed) {
				f.bucket(e.Bucket)
				f.duration("after", e.After)
			}),
		on(zerolog.DebugLevel, "The bucket is draining.",
			func(f facts, e event.BucketDraining) { f.bucket(e.Bucket) }),
		on(zerolog.ErrorLevel, "The bucket is blocked: it stays at one row.",
			func(f facts, e event.BucketBlocked) {
				f.bucket(e.Bucket)
				f.sequence(e.Sequence)
				f.text("reason", e.Reason)
			}),
		on(zerolog.DebugLevel, "The bucket is no longer blocked.",
			func(f facts, e event.BucketUnblocked) {
				f.bucket(e.Bucket)
				f.duration("after", e.After)
			}),
		on(zerolog.WarnLevel, "The bucket is paused by an operator.",
			func(f facts, e event.BucketPaused) {
				f.bucket(e.Bucket)
				f.time("until", e.Until)
				f.text("pausedBy", e.By)
				f.text("reason", e.Reason)
			}),
		on(zerolog.TraceLevel, "A state machine has moved.",
			func(f facts, e event.StateChanged) {
				f.bucket(e.Bucket)
				f.text("machine", e.Machine)
				f.text("transition", e.Event)
				f.text("from", e.From)
				f.text("to", e.To)
			}),
	}
}

func storeLines() []line {
	return []line{
		on(zerolog.WarnLevel, "The table does not answer: requests are tried again.",
			func(f facts, e event.StoreUnavailable) {
				f.text("request", e.Request)
				f.err(e.Err)
			}),
		on(zerolog.DebugLevel, "The table answers again.",
			func(facts, event.StoreAvailable) {}),
		on(zerolog.ErrorLevel, "The table refuses a request.",
			func(f facts, e event.StoreFailed) {
				f.text("request", e.Request)
				f.bucket(e.Bucket)
				f.err(e.Err)
			}),
		on(zerolog.DebugLevel, "The table takes that request again.",
			func(f facts, e event.StoreRecovered) { f.text("request", e.Request) }),
		on(zerolog.TraceLevel, "A request to the table has ended.",
			func(f facts, e event.RequestCompleted) {
				f.text("request", e.Request)
				f.bucket(e.Bucket)
				f.text("outcome", e.Outcome)
				f.duration("took", e.Took)
				f.Float64("capacity", e.Capacity)
			}),
		on(zerolog.TraceLevel, "What waits in all buckets was measured.",
			func(f facts, e event.BacklogSampled) {
				f.number("messages", e.Messages)
				f.number("limited", e.Limited)
				f.duration("oldest", e.Oldest)
				f.number("parkedKeys", e.ParkedKeys)
				f.number("parkedRows", e.ParkedRows)
				f.duration("took", e.Took)
			}),
		at(on(zerolog.DebugLevel, "The relay does not know what waits in all buckets.",
			func(f facts, e event.BacklogUnknown) { f.err(e.Err) }),
			func(e event.BacklogUnknown) zerolog.Level {
				if e.Err != nil {
					return zerolog.WarnLevel
				}
				return zerolog.DebugLevel
			}),
		on(zerolog.WarnLevel, "The table throttles requests.",
			func(f facts, e event.StoreThrottled) {
				f.text("lane", e.Lane)
				f.text("request", e.Request)
				f.bucket(e.Bucket)
			}),
		on(zerolog.DebugLevel, "The table throttles no longer.",
			func(f facts, e event.StoreUnthrottled) { f.text("lane", e.Lane) }),
	}
}

// rowLines are those of the rows of a bucket, as they are read and deleted.
func rowLines() []line {
	return []line{
		on(zerolog.TraceLevel, "The bucket looks for messages.",
			func(f facts, e event.BucketWoken) {
				f.bucket(e.Bucket)
				f.text("cause", e.Cause)
			}),
		on(zerolog.TraceLevel, "Rows were fetched.",
			func(f facts, e event.BatchFetched) {
				f.bucket(e.Bucket)
				f.number("rows", e.Rows)
				f.number("bytes", e.Bytes)
				f.number("refetched", e.Refetched)
			}),
		on(zerolog.TraceLevel, "A gap in the sequence was probed.",
			func(f facts, e event.GapProbed) {
				f.bucket(e.Bucket)
				f.Int64("from", e.From)
				f.Int64("to", e.To)
				f.Bool("filled", e.Filled)
			}),
		on(zerolog.TraceLevel, "Acknowledged rows were deleted.",
			func(f facts, e event.BatchRemoved) {
				f.bucket(e.Bucket)
				f.number("rows", e.Rows)
				f.Int64("last", e.Last)
			}),
		on(zerolog.WarnLevel, "Acknowledged rows could not be deleted: they are published again.",
			func(f facts, e event.DeleteFailed) {
				f.bucket(e.Bucket)
				f.number("rows", e.Rows)
				f.err(e.Err)
			}),
	}
}

func errorIf(err error) zerolog.Level {
	if err != nil {
		return zerolog.ErrorLevel
	}
	return zerolog.InfoLevel
}

// facts adds an event's facts to a line, each in one form.
type facts struct{ *zerolog.Event }

// bucket leaves out -1, which stands for no single bucket.
func (f facts) bucket(b int) {
	if b >= 0 {
		f.Int("bucket", b)
	}
}

// sequence leaves out 0, which no row has.
func (f facts) sequence(s int64) {
	if s != 0 {
		f.Int64("sequence", s)
	}
}

func (f facts) number(name string, n int) { f.Int(name, n) }

// text leaves out what is empty.
func (f facts) text(name, s string) {
	if s != "" {
		f.Str(name, s)
	}
}

func (f facts) duration(name string, d time.Duration) { f.Float64(name, seconds(d)) }

// time leaves out the zero time, which stands for no end.
func (f facts) time(name string, t time.Time) {
	if !t.IsZero() {
		f.Str(name, t.UTC().Format(timeLayout))
	}
}

func (f facts) err(err error) {
	if err != nil {
		f.Str("error", err.Error())
	}
}
