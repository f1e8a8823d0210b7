//go:build integration

package integration

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// line is one line that a process has written. Text has all of it; the fields are
// empty in what is no JSON.
type line struct {
	Level, Event     string
	Time             time.Time
	Request, Outcome string
	Bucket           *int
	Sequence         int64
	Producer         int
	Rows             int
	Ended            []string
	text             string
}

// process is a program at work: a relay, or a broker of the test's own. Its end is
// awaited when the test ends, however the test ends.
type process struct {
	t      testing.TB
	name   string
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has ended and all its lines are read

	mu      sync.Mutex
	lines   []line        // guarded by mu
	changed chan struct{} // guarded by mu; closed and replaced with each line
}

// start runs the relay with these arguments and no settings of ours in its
// environment. name tells the processes of a test apart.
func start(t testing.TB, name string, args ...string) *process {
	t.Helper()
	binary := setting(t, "INTEGRATION_RELAY", "build it and name it: make build && export INTEGRATION_RELAY=$PWD/bin/relay")
	cmd := exec.Command(binary, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(),
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_REGION=us-east-1", "AWS_EC2_METADATA_DISABLED=true"}
	return launch(t, name, cmd)
}

// launch runs a command and reads the lines that it writes.
func launch(t testing.TB, name string, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, name: name, cmd: cmd, exited: make(chan struct{}), changed: make(chan struct{})}
	output, input, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = input, input
	err = cmd.Start()
	input.Close() // the process has its own
	if err != nil {
		output.Close()
		t.Fatal(err)
	}
	go func() {
		defer close(p.exited)
		defer output.Close()
		p.read(bufio.NewReader(output))
		p.cmd.Wait() // the end is judged by ProcessState
	}()
	t.Cleanup(p.end)
	return p
}

// read takes lines until no process writes to it any more. An event that somebody
// else wrote into is a fault: whoever counts events would miss it.
func (p *process) read(output *bufio.Reader) {
	for {
		text, err := output.ReadString('\n')
		if text = strings.TrimSuffix(text, "\n"); text != "" {
			l := line{}
			// What is no JSON stays text.
			if json.Unmarshal([]byte(text), &l) != nil && err == nil && strings.Contains(text, `{"level":`) {
				p.t.Errorf("%s: an event was torn: %s", p.name, text)
			}
			l.text = text
			p.mu.Lock()
			p.lines = append(p.lines, l)
			close(p.changed)
			p.changed = make(chan struct{})
			p.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

// end kills what still runs, and shows the last lines when the test has failed.
func (p *process) end() {
	select {
	case <-p.exited:
	default:
		p.cmd.Process.Kill()
		<-p.exited
	}
	if p.t.Failed() {
		const shown = 40
		lines := p.said(func(l line) bool { return l.Level != "trace" })
		p.t.Logf("%s: %v; its last lines:", p.name, p.cmd.ProcessState)
		for _, l := range lines[max(0, len(lines)-shown):] {
			p.t.Logf("  %s", l.text)
		}
	}
}

// said is every line until now that matches.
func (p *process) said(matches func(line) bool) []line {
	p.mu.Lock()
	defer p.mu.Unlock()
	var said []line
	for _, l := range p.lines {
		if matches(l) {
			said = append(said, l)
		}
	}
	return said
}

// output is all of stderr until now.
func (p *process) output() string {
	var text strings.Builder
	for _, l := range p.said(func(line) bool { return true }) {
		text.WriteString(l.text + "\n")
	}
	return text.String()
}

// now is the position behind the last line, for awaitFrom.
func (p *process) now() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.lines)
}

// await waits for the first line of the event that matches, among those written
// already too. A nil function matches all.
func (p *process) await(event string, matches func(line) bool) line {
	p.t.Helper()
	return p.awaitFrom(0, event, matches)
}

// awaitFrom is await for the lines behind a position.
func (p *process) awaitFrom(next int, event string, matches func(line) bool) line {
	p.t.Helper()
	return p.awaitLine(next, event, func(l line) bool { return l.Event == event && (matches == nil || matches(l)) })
}

// awaitLine waits for the first line behind a position that matches; what is said
// then is for people.
func (p *process) awaitLine(next int, what string, matches func(line) bool) line {
	p.t.Helper()
	deadline := time.After(patience)
	for {
		p.mu.Lock()
		lines, changed := p.lines, p.changed
		p.mu.Unlock()
		for ; next < len(lines); next++ {
			if l := lines[next]; matches(l) {
				return l
			}
		}
		select {
		case <-changed:
		case <-p.exited:
			if p.now() == next {
				p.t.Fatalf("%s ended (%v) without saying %s", p.name, p.cmd.ProcessState, what)
			}
		case <-deadline:
			p.t.Fatalf("%s has not said %s within %v", p.name, what, patience)
		}
	}
}

// signal sends a signal to the process.
func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("signal %s: %v", p.name, err)
	}
}

// exit waits for the end of the process and returns its exit code, or -1 when a
// signal has killed it.
func (p *process) exit() int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		p.t.Fatalf("%s has not ended within %v", p.name, patience)
	}
	return p.cmd.ProcessState.ExitCode()
}

// stop asks the process to drain, and wants it to end well.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != 0 {
		p.t.Errorf("%s ended with %d after SIGTERM, want 0", p.name, code)
	}
}

// relayArgs are the arguments of a relay on this table that hands over quickly.
func relayArgs(t testing.TB, table, id string, more ...string) []string {
	t.Helper()
	return append([]string{"run", "--table", table, "--relay-id", id,
		"--dynamodb-endpoint", endpoint(t), "--brokers", brokers(t).String(),
		"--lease-duration", "3s", "--lease-renew-interval", "1s", "--max-clock-skew", "200ms",
		"--poll-interval", "100ms", "--error-backoff", "100ms", "--log-format", "json", "--admin-addr", "127.0.0.1:0"}, more...)
}
