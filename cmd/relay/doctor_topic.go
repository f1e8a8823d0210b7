package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/kafka"
)

// topicChecks are about the topics of the rows that wait, and the one for letters.
type topicChecks struct {
	settings *settings.Settings
	outbox   *outboxChecks
	brokers  *brokerChecks

	topics []topicSeen
	fault  error // why nothing is known of them
}

// topicSeen is a topic as it is, and what it is for.
type topicSeen struct {
	kafka.TopicState
	use     topicUse // of no rows: only letters go there
	letters bool
}

// gather asks about topics, when it is known of which: after the outbox and the brokers
// were looked at.
func (t *topicChecks) gather(ctx context.Context) {
	if t.fault = t.brokers.unusable(); t.fault != nil {
		return
	}
	uses := t.outbox.topics()
	letters := ""
	if t.settings.Relay.Poison == relay.PoisonDeadLetter {
		letters = t.settings.Relay.DeadLetterTopic
	}
	if letters != "" && !slices.ContainsFunc(uses, func(u topicUse) bool { return u.topic == letters }) {
		uses = append(uses, topicUse{topic: letters, partition: -1})
	}
	names := make([]string, len(uses))
	for i, use := range uses {
		names[i] = use.topic
	}
	states, err := t.brokers.inspector.Topics(ctx, names)
	if err != nil {
		t.fault = err
		return
	}
	for i, state := range states {
		t.topics = append(t.topics, topicSeen{TopicState: state, use: uses[i], letters: state.Name == letters})
	}
}

func (t *topicChecks) judge() []checkDocument {
	ids := []string{checkTopics, checkWritable, checkPartitions, checkInSync, checkSize, checkElections, checkRetention, checkCompaction, checkDeadLetter}
	switch {
	case t.fault != nil:
		return skippedAll("topics", brief(t.fault), ids...)
	case t.outbox.fault != nil:
		return skippedAll("topics", "what waits is not known", ids...)
	}
	var there, open []topicSeen
	for _, topic := range t.topics {
		if topic.Fault == nil {
			there = append(there, topic)
			if topic.SettingsFault == nil {
				open = append(open, topic)
			}
		}
	}
	found := t.exist()
	if len(there) == 0 {
		found = append(found, skippedAll("topics", "there is none to look at", checkWritable, checkPartitions, checkInSync)...)
	} else {
		found = slices.Concat(found, t.each(checkWritable, "may be written to, and its settings read", there, t.permitted),
			t.each(checkPartitions, "has a leader in each partition, and all that rows ask for", there, t.partitioned),
			t.each(checkInSync, "has the replicas that its writes need", there, t.replicated))
	}
	if len(open) == 0 {
		why := "no settings of a topic could be read"
		if len(there) == 0 {
			why = "there is none to look at"
		}
		found = append(found, skippedAll("topics", why, checkSize, checkElections, checkRetention, checkCompaction)...)
	} else {
		found = slices.Concat(found, t.each(checkSize, "takes the largest of the waiting rows", open, t.sized),
			t.each(checkElections, "elects no leader that misses records", open, t.elected),
			t.each(checkRetention, "keeps records for longer than any has waited", open, t.kept),
			t.each(checkCompaction, "takes rows without a key, or none is without", open, t.compacted))
	}
	return append(found, t.deadLetter())
}

func (t *topicChecks) each(id, fine string, topics []topicSeen, judgement func(topicSeen) *checkDocument) []checkDocument {
	return eachOf(id, "topic", fine, topics, judgement)
}

func (s topicSeen) subject() string { return "topic " + legible(s.Name) }

// exist judges the topics of waiting rows. One that may not be described is another
// check's.
func (t *topicChecks) exist() []checkDocument {
	used := slices.DeleteFunc(slices.Clone(t.topics), func(s topicSeen) bool { return s.use.rows == 0 })
	if len(used) == 0 {
		return []checkDocument{passed(checkTopics, "topics", "no row waits for any")}
	}
	return eachOf(checkTopics, "topic", fmt.Sprintf("exists, of the first %d rows of each bucket", sampledRows), used, func(s topicSeen) *checkDocument {
		if s.Fault == nil {
			return nil
		}
		document := t.absent(s)
		return &document
	})
}

func (t *topicChecks) absent(s topicSeen) checkDocument {
	waiting := fmt.Sprintf("%s for it, one in bucket %d", counted(s.use.rows, "row")+" waiting", s.use.bucket)
	switch s.Fault.Kind {
	case kafka.Missing:
		if marked := t.outbox.ofTopic(s.Name); len(marked) > 0 {
			// Its rows are passed already. Whoever has paused it resumes it.
			again := "relay parked retry --topic "
			if marked[0].PausedUntil != 0 {
				again = "relay resume --topic "
			}
			return failed(checkTopics, s.subject(), "does not exist, and is set aside as a whole: "+waiting, "create it, and then: "+again+shellWord(s.Name))
		}
		return failed(checkTopics, s.subject(), "does not exist: "+waiting,
			"create it; if its name is mistyped, set it aside: relay message park --topic "+shellWord(s.Name))
	case kafka.Invalid:
		return failed(checkTopics, s.subject(), s.Fault.Text+": "+waiting,
			"no topic can have that name: correct the writer; the rows are set aside by the relay, or by relay message park")
	case kafka.Denied:
		return failed(checkWritable, s.subject(), "may not be looked at: "+s.Fault.Error()+"; "+waiting, "grant DESCRIBE, WRITE and DESCRIBE_CONFIGS on it")
	default:
		return skipped(checkTopics, s.subject(), notSeen(s.Fault))
	}
}

func (t *topicChecks) permitted(s topicSeen) *checkDocument {
	var document checkDocument
	switch {
	case s.Permitted == nil:
		document = skipped(checkWritable, s.subject(), "the brokers do not say what is permitted")
	case !slices.Contains(s.Permitted, kafka.Write):
		document = failed(checkWritable, s.subject(), "may not be written to", "grant WRITE on it")
	case s.SettingsFault != nil:
		document = warned(checkWritable, s.subject(), "its settings may not be read: "+s.SettingsFault.Error(),
			"grant DESCRIBE_CONFIGS on it: without, a relay does not foresee that a row is too large, and learns it by a rejection of all that was sent along")
	default:
		return nil
	}
	return &document
}

func (t *topicChecks) partitioned(s topicSeen) *checkDocument {
	var leaderless []int
	for _, p := range s.Partitions {
		if p.Leaderless {
			leaderless = append(leaderless, p.ID)
		}
	}
	var document checkDocument
	switch {
	case len(leaderless) > 0:
		document = failed(checkPartitions, s.subject(), "has no leader in "+numberedText("partition", leaderless), "bring back the brokers that have their replicas")
	case s.use.rows > 0 && int(s.use.partition) >= len(s.Partitions):
		document = failed(checkPartitions, s.subject(), fmt.Sprintf("has %s, and a row asks for number %d", counted(len(s.Partitions), "partition"), s.use.partition),
			"give the topic more partitions, or correct the writer: such a row is rejected")
	default:
		return nil
	}
	return &document
}

// replicated judges what acks=all is worth. min.insync.replicas is known only when the
// settings are.
func (t *topicChecks) replicated(s topicSeen) *checkDocument {
	replicas, inSync := s.Partitions[0].Replicas, s.Partitions[0].InSync
	for _, p := range s.Partitions {
		replicas, inSync = min(replicas, p.Replicas), min(inSync, p.InSync)
	}
	least, known := whole(s.Settings, "min.insync.replicas")
	var document checkDocument
	switch {
	case known && least > int64(replicas):
		document = failed(checkInSync, s.subject(), fmt.Sprintf("min.insync.replicas is %d, and a partition has %s: no record is ever acknowledged", least, counted(replicas, "replica")),
			"lower min.insync.replicas, or add replicas")
	case known && int64(inSync) < least:
		document = failed(checkInSync, s.subject(), fmt.Sprintf("a partition has %d in sync, min.insync.replicas is %d: its records are not acknowledged at present", inSync, least),
			"bring back the brokers that have its replicas")
	case replicas == 1:
		document = warned(checkInSync, s.subject(), "has one replica: what was acknowledged is lost with its broker", "have three replicas, and min.insync.replicas=2")
	case known && least == int64(replicas):
		document = warned(checkInSync, s.subject(), fmt.Sprintf("min.insync.replicas is %d, of %d: one broker that is away stops all", least, replicas),
			"have one replica more than min.insync.replicas")
	case known && least == 1:
		document = warned(checkInSync, s.subject(), fmt.Sprintf("min.insync.replicas is 1, of %d: what one broker alone has is acknowledged, and lost with it", replicas),
			"set min.insync.replicas=2")
	default:
		return nil
	}
	return &document
}

func (t *topicChecks) sized(s topicSeen) *checkDocument {
	limit, known := whole(s.Settings, "max.message.bytes")
	if !known || s.use.rows == 0 || int64(s.use.largest) <= limit {
		return nil
	}
	found := fmt.Sprintf("row %d of bucket %d takes %d bytes, max.message.bytes is %d", s.use.sequence, s.use.bucket, s.use.largest, limit)
	advice := "raise max.message.bytes; as it is, the row is rejected, and its key waits by the poison policy"
	document := failed(checkSize, s.subject(), found, advice)
	if kafka.Compresses(t.settings.Kafka.Properties) {
		document = warned(checkSize, s.subject(), found+" of what is compressed", "raise max.message.bytes, unless its content compresses well")
	}
	return &document
}

func (t *topicChecks) elected(s topicSeen) *checkDocument {
	if s.Settings["unclean.leader.election.enable"] != "true" {
		return nil
	}
	document := warned(checkElections, s.subject(), "a replica that misses records may become leader: records that were acknowledged, and whose rows are deleted, are lost then",
		"set unclean.leader.election.enable=false")
	return &document
}

// kept compares retention with the age of rows. Records have the time of their
// publishing, so that nothing is dropped when it comes; but whoever reads is given less
// time than the relay has taken.
func (t *topicChecks) kept(s topicSeen) *checkDocument {
	millis, known := whole(s.Settings, "retention.ms")
	if !known || millis < 0 || s.use.rows == 0 || s.Settings["cleanup.policy"] == "compact" {
		return nil
	}
	retention, age := time.Duration(millis)*time.Millisecond, t.outbox.now.Sub(s.use.oldest)
	if millis > int64(age/time.Millisecond) {
		return nil
	}
	document := warned(checkRetention, s.subject(), fmt.Sprintf("keeps records for %s (retention.ms), and a row has waited for %s", ageText(retention), ageText(age)),
		"raise retention.ms: consumers that are held up for as long as the relay was lose records")
	return &document
}

func (t *topicChecks) compacted(s topicSeen) *checkDocument {
	policy := s.Settings["cleanup.policy"]
	if s.use.keyless == 0 || policy != "compact" && policy != "compact,delete" && policy != "delete,compact" {
		return nil
	}
	document := failed(checkCompaction, s.subject(), fmt.Sprintf("is compacted, and %s no key: such a record is rejected", have(s.use.keyless, "row")),
		"give the messages keys, or set cleanup.policy=delete")
	return &document
}

func (t *topicChecks) deadLetter() checkDocument {
	if t.settings.Relay.Poison != relay.PoisonDeadLetter {
		return skipped(checkDeadLetter, "dead-letter topic", "poison is "+string(t.settings.Relay.Poison))
	}
	at := slices.IndexFunc(t.topics, func(s topicSeen) bool { return s.letters })
	s := t.topics[at]
	switch {
	case s.Fault == nil:
		return passed(checkDeadLetter, s.subject(), "exists")
	case s.Fault.Kind == kafka.Unanswered, s.Fault.Kind == kafka.Refused:
		return skipped(checkDeadLetter, s.subject(), notSeen(s.Fault))
	default:
		return failed(checkDeadLetter, s.subject(), "is not there for us: "+s.Fault.Error(), "create it, and grant DESCRIBE and WRITE on it: without, no relay takes a share")
	}
}

// whole is a setting that is a whole number.
func whole(settings map[string]string, name string) (int64, bool) {
	n, err := strconv.ParseInt(settings[name], 10, 64)
	return n, err == nil
}
