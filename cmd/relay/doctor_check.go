package main

import (
	"context"
	"errors"
	"net"

	"github.com/aws/smithy-go"
)

// The ids of the checks, a contract with scripts. docs/doctor.md says of each what it
// looks at, what its statuses mean and what to do.
const (
	checkTable        = "table"
	checkKeys         = "table-keys"
	checkBilling      = "table-billing"
	checkIndexes      = "table-indexes"
	checkTimeToLive   = "table-ttl"
	checkReplicas     = "table-replicas"
	checkStream       = "table-stream"
	checkProtection   = "table-protection"
	checkPermission   = "permission"
	checkClock        = "clock"
	checkRelayClocks  = "relay-clocks"
	checkRelays       = "relays"
	checkSilent       = "relays-silent"
	checkForeign      = "relays-foreign"
	checkModes        = "relay-modes"
	checkDurations    = "lease-duration"
	checkLeases       = "leases"
	checkCoordination = "coordination"
	checkPauses       = "pauses"
	checkBucketCount  = "bucket-count"
	checkRows         = "rows"
	checkBacklog      = "backlog"
	checkParked       = "parked"
	checkSequence     = "sequence"
	checkBrokers      = "brokers"
	checkVersions     = "broker-versions"
	checkProducer     = "kafka-producer"
	checkTransactions = "kafka-transactions"
	checkTopics       = "topics"
	checkWritable     = "topic-permission"
	checkPartitions   = "topic-partitions"
	checkSize         = "topic-size"
	checkInSync       = "topic-replicas"
	checkElections    = "topic-elections"
	checkRetention    = "topic-retention"
	checkCompaction   = "topic-compaction"
	checkDeadLetter   = "dead-letter-topic"
)

// The statuses of a check, a contract with scripts.
const (
	statusOK      = "ok"
	statusWarning = "warning" // works, and may not for long, or not as wanted
	statusFailure = "failure" // does not work, or loses what is promised; the exit code is 1
	statusSkipped = "skipped" // could not be looked at, or need not
)

// checkDocument is what one check has found.
type checkDocument struct {
	ID      string `json:"id"` // of the kind of check
	Status  string `json:"status"`
	Subject string `json:"subject"` // what was looked at
	Found   string `json:"found"`
	Advice  string `json:"advice"` // empty when there is nothing to do
}

func passed(id, subject, found string) checkDocument {
	return checkDocument{ID: id, Status: statusOK, Subject: subject, Found: found}
}

func warned(id, subject, found, advice string) checkDocument {
	return checkDocument{ID: id, Status: statusWarning, Subject: subject, Found: found, Advice: advice}
}

func failed(id, subject, found, advice string) checkDocument {
	return checkDocument{ID: id, Status: statusFailure, Subject: subject, Found: found, Advice: advice}
}

func skipped(id, subject, why string) checkDocument {
	return checkDocument{ID: id, Status: statusSkipped, Subject: subject, Found: why}
}

// notLooked are checks whose facts are missing since a service did not give them: skipped,
// but when time ran out. Then one of them fails in place of all, for nobody knows whether
// anything is wrong, and more time may tell.
func notLooked(subject string, fault error, ids ...string) []checkDocument {
	all := skippedAll(subject, notSeen(fault), ids...)
	if errors.Is(fault, context.DeadlineExceeded) {
		all[0].Status, all[0].Advice = statusFailure, "check region, endpoint and network, or give it longer: --timeout"
	}
	return all
}

// skippedAll are the same of several ids.
func skippedAll(subject, why string, ids ...string) []checkDocument {
	var all []checkDocument
	for _, id := range ids {
		all = append(all, skipped(id, subject, why))
	}
	return all
}

// family is checks that go by the same facts. The facts are gathered first, those of
// all families before any is judged, so that nothing is asked twice.
type family interface {
	// gather asks for the facts until ctx ends. That there is no answer is a fact, too.
	gather(ctx context.Context)
	// judge says what the facts mean. It asks for nothing.
	judge() []checkDocument
}

// eachOf judges subjects one by one. What is wrong stands alone; those with which
// nothing is wrong, of which the judgement is nil, stand together.
func eachOf[T any](id, noun, fine string, subjects []T, judgement func(T) *checkDocument) []checkDocument {
	var found []checkDocument
	sound := 0
	for _, subject := range subjects {
		if one := judgement(subject); one != nil {
			found = append(found, *one)
		} else {
			sound++
		}
	}
	if sound > 0 {
		found = append(found, passed(id, counted(sound, noun), fine))
	}
	return found
}

// notSeen words why facts are missing.
func notSeen(err error) string { return "not looked at: " + brief(err) }

// brief is an error of a service without what the SDK wraps around it.
func brief(err error) string {
	var answer smithy.APIError
	var broken *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time (--timeout)"
	case errors.As(err, &answer):
		return answer.ErrorCode() + ": " + answer.ErrorMessage()
	case errors.As(err, &broken):
		return broken.Error()
	default:
		return err.Error()
	}
}
