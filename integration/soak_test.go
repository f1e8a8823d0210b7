//go:build integration

package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bucketbrigade/relay/outbox"
)

const (
	// soakPerTick messages are written each soakTick: a steady load of 100 a second.
	soakPerTick = 10
	soakTick    = 100 * time.Millisecond
	soakKeys    = 200
	// soakReadings is how many readings a run has at most.
	soakReadings = 1000
	soakRestart  = time.Minute
)

// soak is a long run: the relay that is watched, beside one that comes and goes.
type soak struct {
	t        *testing.T
	schema   outbox.Schema
	topic    string
	watched  *process
	address  string // of its admin address
	began    time.Time
	readings map[string][]reading
	written  []sent // read only after the writer has ended
	restarts int
}

// Two relays move a steady load for a long time, and one of them is restarted each
// minute, so that the other takes buckets over and hands them back again and again. What
// it has of memory, goroutines, threads and file descriptors does not grow, and not a
// message is lost or out of order. It runs when it is asked for: make soak, SOAK=30m.
func TestSoak(t *testing.T) {
	text := os.Getenv("INTEGRATION_SOAK")
	if text == "" {
		t.Skip("INTEGRATION_SOAK is not set; make soak sets it")
	}
	duration, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("INTEGRATION_SOAK: %v", err)
	}
	client := dynamo(t)
	s := &soak{t: t, schema: freshTable(t, client, outbox.Schema{}), topic: uniqueTopic(t), readings: map[string][]reading{}}
	createTopic(t, s.topic, 6, 0)
	s.watched = start(t, "watched", relayArgs(t, s.schema.Table, "watched")...)
	s.address = listening(t, s.watched)
	s.watched.await("relay.ready", nil)

	ctx, cancel := context.WithTimeout(t.Context(), duration)
	defer cancel()
	wrote := make(chan error, 1)
	go func() { wrote <- s.write(ctx, newWriter(t, client, s.schema)) }()
	s.watch(ctx, duration)
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
	partitions := map[string]int{s.topic: 6}
	awaitDelivery(t, s.written, partitions)
	s.watched.stop()
	verdict := check(s.written, readTopic(t, s.topic), partitions, time.Now())
	t.Logf("%v, while a second relay was restarted %d times in %v", &verdict, s.restarts, duration)
	if !verdict.sound() {
		t.Errorf("%v", &verdict)
	}
	s.judge()
}

// write commits a steady load until ctx ends. What was begun then is finished.
func (s *soak) write(ctx context.Context, writer *outbox.Writer) error {
	ticks := time.NewTicker(soakTick)
	defer ticks.Stop()
	for n := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
		batch := make([]outbox.Message, soakPerTick)
		for i := range batch {
			batch[i] = outbox.NewMessage(s.topic, fmt.Appendf(nil, "key-%d", n%soakKeys), fmt.Appendf(nil, "%d", n))
			s.written = append(s.written, sent{message: batch[i], stream: string(batch[i].Key), began: batch[i].CreatedAt})
			n++
		}
		if err := writer.Enqueue(context.WithoutCancel(ctx), batch...); err != nil {
			return err
		}
	}
}

// watch reads what the watched relay has, and restarts the other one, until ctx ends.
func (s *soak) watch(ctx context.Context, duration time.Duration) {
	s.t.Helper()
	s.began = time.Now()
	every := max(time.Second, duration/soakReadings)
	readings, restarts := time.NewTicker(every), time.NewTicker(soakRestart)
	defer readings.Stop()
	defer restarts.Stop()
	join := func() *process { return start(s.t, "other", relayArgs(s.t, s.schema.Table, "other")...) }
	// One that is told to stop before it listens to signals dies of it.
	leave := func(other *process) { other.await("relay.started", nil); other.stop() }
	other := join()
	for {
		select {
		case <-ctx.Done():
			leave(other)
			return
		case <-readings.C:
			s.read()
		case <-restarts.C:
			leave(other)
			other = join()
			s.restarts++
		}
	}
}

// read takes one reading of each kind.
func (s *soak) read() {
	s.t.Helper()
	at := time.Since(s.began)
	note := func(name string, value float64) {
		s.readings[name] = append(s.readings[name], reading{at, value})
	}
	folder := fmt.Sprintf("/proc/%d", s.watched.cmd.Process.Pid)
	status, err := os.ReadFile(folder + "/status")
	if err != nil {
		s.t.Fatalf("the watched relay has gone, or this system does not tell what it has: %v", err)
	}
	for line := range strings.Lines(string(status)) {
		var n float64
		if found, _ := fmt.Sscanf(line, "VmRSS: %f kB", &n); found == 1 {
			note("memory in MB", n/1024)
		}
		if found, _ := fmt.Sscanf(line, "Threads: %f", &n); found == 1 {
			note("threads", n)
		}
	}
	descriptors, err := os.ReadDir(folder + "/fd")
	if err != nil {
		s.t.Fatal(err)
	}
	note("file descriptors", float64(len(descriptors)))
	note("goroutines", scraped(s.t, s.address, "go_goroutines"))
}

// judge wants none of it to grow.
func (s *soak) judge() {
	for _, name := range []string{"memory in MB", "goroutines", "threads", "file descriptors"} {
		trend := trendOf(name, s.readings[name])
		s.t.Logf("%v; at most %+.2f", trend, trend.allowed())
		if fault := trend.fault(); fault != "" {
			s.t.Error(fault)
		}
	}
}

// listening is the admin address that a relay has taken.
func listening(t *testing.T, p *process) string {
	t.Helper()
	var logged struct{ Address string }
	if err := json.Unmarshal([]byte(p.await("admin.listening", nil).text), &logged); err != nil {
		t.Fatal(err)
	}
	return logged.Address
}

// scraped is the value of a metric without labels.
func scraped(t *testing.T, address, metric string) float64 {
	t.Helper()
	response, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if text, found := strings.CutPrefix(lines.Text(), metric+" "); found {
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			return value
		}
	}
	t.Fatalf("no %s at %s", metric, address)
	return 0
}
