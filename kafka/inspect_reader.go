package kafka

import (
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// statisticsMillis is between two reports of the client about itself, and so how
// late an inspector knows of its producer id.
const statisticsMillis = 100

// versionsTimeout bounds the wait for what the client says of brokers that have
// answered: brokers from before Kafka 0.10 never say what they take.
const versionsTimeout = time.Second

// listen gives what a client says to who wants it, until the client is closed.
func listen(client *ck.Producer, logs <-chan ck.LogEvent, take func(ck.Event), note func(ck.LogEvent)) {
	for events := client.Events(); ; {
		select {
		case event, open := <-events:
			if !open {
				return
			}
			take(event)
		case entry, open := <-logs:
			if !open {
				logs = nil // closed first, when the client is
				continue
			}
			note(entry)
		}
	}
}

// statistics is the part of the client's report that tells of its producer id.
type statistics struct {
	EOS struct {
		ProducerID *int64 `json:"producer_id"`
	} `json:"eos"`
}

func (i *Inspector) take(event ck.Event) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch e := event.(type) {
	case *ck.Stats:
		var s statistics
		if err := json.Unmarshal([]byte(e.String()), &s); err == nil && s.EOS.ProducerID != nil && *s.EOS.ProducerID >= 0 {
			i.settle(nil)
		}
	case ck.Error:
		if e.Code() == ck.ErrAllBrokersDown {
			return // says no more than the complaint before it
		}
		trouble := troubleOf(e.Code())
		trouble.Text = scrub(e.String(), i.config.Properties)
		if e.IsFatal() {
			i.settle(trouble)
			return
		}
		i.last = trouble
	}
}

// settle notes that the producer has its id, or why it can get none. For who holds mu.
func (i *Inspector) settle(fatal *Trouble) {
	select {
	case <-i.granted:
	default:
		i.fatal = fatal
		close(i.granted)
	}
}

// Lines of the client about a broker, by its address, and about one request that a
// broker takes. They are the one thing here that is found by its text: the client
// has no call for it. When a later client words them in another way, the versions
// are unknown, and a test says so.
var (
	brokerLine  = regexp.MustCompile(`: (?:\w+://)?([^ /]+)/(?:bootstrap|\d+):\s+(.*)`)
	versionLine = regexp.MustCompile(`^ApiKey \S+ \((\d+)\) Versions (\d+)\.\.(\d+)`)
)

// note takes the lines about a broker's requests. They come one after another, each
// with one request; what comes next says that they are complete.
func (i *Inspector) note(entry ck.LogEvent) {
	line := brokerLine.FindStringSubmatch(entry.Message)
	if line == nil {
		return
	}
	address, text := line[1], line[2]
	i.mu.Lock()
	defer i.mu.Unlock()
	if found := versionLine.FindStringSubmatch(text); found != nil {
		if i.listing[address] == nil {
			i.listing[address] = make(map[int16]Versions)
		}
		i.listing[address][number(found[1])] = Versions{Low: number(found[2]), High: number(found[3])}
		return
	}
	if i.listing[address] == nil {
		return
	}
	i.versions[address] = i.listing[address]
	delete(i.listing, address)
	close(i.told)
	i.told = make(chan struct{})
}

// number is one of the protocol's numbers, which have 16 bits; -1 for no such number.
func number(digits string) int16 {
	n, err := strconv.ParseInt(digits, 10, 16)
	if err != nil {
		return -1
	}
	return int16(n)
}

// versionsOf waits until all these brokers have said what they take, for as long as
// the client may need to pass on what they have said already.
func (i *Inspector) versionsOf(ctx context.Context, addresses []string) map[string]map[int16]Versions {
	ctx, cancel := context.WithTimeout(ctx, versionsTimeout)
	defer cancel()
	for {
		i.mu.Lock()
		known, told := maps.Clone(i.versions), i.told
		i.mu.Unlock()
		if !slices.ContainsFunc(addresses, func(a string) bool { return known[a] == nil }) {
			return known
		}
		select {
		case <-told:
		case <-ctx.Done():
			return known
		}
	}
}
