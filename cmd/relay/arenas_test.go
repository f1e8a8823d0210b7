package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/kafka"
)

// arenasWanted names the variable under which TestThreadsShareArenas starts its own
// binary, to open producers in a fresh process.
const arenasWanted = "RELAY_TEST_ARENAS"

// The threads of any number of producers share two arenas of memory, unless the
// environment has another limit.
func TestThreadsShareArenas(t *testing.T) {
	if os.Getenv(arenasWanted) != "" {
		openProducers(t)
		t.Logf("arenas: %d", countArenas(t))
		return
	}
	free := arenasOf(t, "MALLOC_ARENA_MAX=8")
	if free <= 2 {
		t.Skipf("this C library gives threads no arenas: %d", free)
	}
	if ours := arenasOf(t); ours > 2 {
		t.Errorf("%d arenas, %d where 8 are allowed; want 2 at most", ours, free)
	}
	if tuned := arenasOf(t, "GLIBC_TUNABLES=glibc.malloc.arena_max=8"); tuned <= 2 {
		t.Errorf("%d arenas where another variable allows 8, want more", tuned)
	}
}

// openProducers has each of four producers send a record.
func openProducers(t *testing.T) {
	t.Helper()
	mock, err := kafka.StartMock(kafka.Topic{Name: "t", Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(mock.Close)
	factory, err := kafka.NewFactory(mock.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if _, err := factory.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	for n := range 4 {
		reported := make(chan struct{}, 1)
		p, err := factory.Open(publisher.Options{Number: n}, func(message any) {
			if _, is := message.(publisher.Reported); is {
				reported <- struct{}{}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Produce(publisher.Record{Topic: "t", Value: []byte("v")}, publisher.Token{Sequence: 1}); err != nil {
			t.Fatal(err)
		}
		<-reported
	}
}

// countArenas counts the first arena and those of threads: what is in use of each, and
// then what is reserved, is 64 MiB together, and begins at a multiple of that. So may
// Go's heap, in which the text is that says so.
func countArenas(t *testing.T) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skipf("this system does not tell what a process has mapped: %v", err)
	}
	const size = 64 << 20
	heap := uint64(uintptr(unsafe.Pointer(&maps[0])))
	n, used := 1, uint64(0) // where the mapping before begins, if it is in use
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		var permissions string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &permissions); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if permissions == "---p" && used > 0 && used%size == 0 && to == used+size && (heap < used || heap >= to) {
			n++
		}
		if used = 0; permissions == "rw-p" {
			used = from
		}
	}
	return n
}

// arenasOf counts the arenas of a fresh process in which producers were opened.
func arenasOf(t *testing.T, environ ...string) int {
	t.Helper()
	other := exec.Command(os.Args[0], "-test.v", "-test.run", "^TestThreadsShareArenas$")
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "MALLOC_") && !strings.HasPrefix(entry, "GLIBC_TUNABLES=") {
			other.Env = append(other.Env, entry)
		}
	}
	other.Env = append(other.Env, append(environ, arenasWanted+"=1")...)
	out, err := other.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	found := regexp.MustCompile(`arenas: (\d+)`).FindSubmatch(out)
	if found == nil {
		t.Skipf("the other process did not count:\n%s", out)
	}
	n, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
