package kafka

import (
	"context"
	"strconv"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/bucketbrigade/relay/actors/publisher"
)

// backgroundCalls bounds the descriptions of one producer at a time.
const backgroundCalls = 4

// Describe implements publisher.Producer.
func (p *producer) Describe(topic string) {
	if fault := inspectTopic(topic); fault != nil {
		p.emit(publisher.Described{Producer: p.number, Topic: topic, Compressed: p.settings.compressed, Fault: fault})
		return
	}
	if !p.enter() {
		return
	}
	go func() {
		defer p.calls.Done()
		ctx, cancel := context.WithTimeout(p.life, p.config.DescribeTimeout)
		defer cancel()
		p.emit(p.describe(ctx, topic))
	}()
}

func (p *producer) describe(ctx context.Context, topic string) publisher.Described {
	d := publisher.Described{Producer: p.number, Topic: topic, Compressed: p.settings.compressed}
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
		d.Partitions, d.Fault = p.partitions(ctx, topic)
	case <-ctx.Done():
		d.Fault = p.question(ck.ErrTimedOut)
	}
	if d.Fault == nil {
		d.MaxMessageBytes = p.maxMessageBytes(ctx, topic)
	}
	return d
}

// partitions asks until a broker answers or ctx ends, and no longer: an answer that
// came later would be taken for that to the next question.
func (p *producer) partitions(ctx context.Context, topic string) (int32, *publisher.Fault) {
	for {
		timeout := attemptTimeout
		if deadline, has := ctx.Deadline(); has {
			timeout = max(time.Millisecond, min(timeout, time.Until(deadline)))
		}
		metadata, err := p.client.GetMetadata(&topic, false, int(timeout.Milliseconds()))
		if err == nil {
			p.out.Lock()
			p.answered()
			p.out.Unlock()
			described := metadata.Topics[topic]
			if code := described.Error.Code(); code != ck.ErrNoError {
				return 0, p.question(code)
			}
			if len(described.Partitions) == 0 {
				return 0, p.question(ck.ErrUnknownTopicOrPart)
			}
			return int32(len(described.Partitions)), nil
		}
		if ctx.Err() != nil {
			return 0, p.questionOf(err)
		}
		p.pause()
	}
}

// question is the fault of metadata that did not come: asking again does no
// harm, so that nothing of it is ambiguous.
func (p *producer) question(code ck.ErrorCode) *publisher.Fault {
	fault := p.codes.fault(code)
	if fault.Class == publisher.Ambiguous {
		fault.Class = publisher.Retriable
	}
	return fault
}

func (p *producer) questionOf(err error) *publisher.Fault {
	fault := p.codes.faultOf(err)
	if fault.Class == publisher.Ambiguous {
		fault.Class = publisher.Retriable
	}
	return fault
}

// maxMessageBytes is the topic's limit of one request, in bytes; 0 when the
// broker does not tell, for want of permission or of the feature.
func (p *producer) maxMessageBytes(ctx context.Context, topic string) int {
	if p.config.LimitTimeout < 0 {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, p.config.LimitTimeout)
	defer cancel()
	admin, err := ck.NewAdminClientFromProducer(p.client)
	if err != nil {
		return 0
	}
	defer admin.Close()
	resources, err := admin.DescribeConfigs(ctx, []ck.ConfigResource{{Type: ck.ResourceTopic, Name: topic}})
	if err != nil || len(resources) != 1 || resources[0].Error.Code() != ck.ErrNoError {
		return 0
	}
	n, err := strconv.Atoi(resources[0].Config["max.message.bytes"].Value)
	if err != nil {
		return 0
	}
	return n
}
