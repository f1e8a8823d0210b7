//go:build integration

package integration

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// line is one line that a process has written to stderr. Text has all of it;
// the fields are empty in what is no JSON.
type line struct {
	Level, Event     string
	Request, Outcome string
	Rows             int
	Ended            []string
	text             string
}

// process is a relay binary at work. Its end is awaited when the test ends,
// however the test ends.
type process struct {
	t      testing.TB
	name   string
	cmd    *exec.Cmd
	stdout bytes.Buffer
	exited chan struct{} // closed when it has ended and all its lines are read

	mu      sync.Mutex
	lines   []line        // guarded by mu
	changed chan struct{} // guarded by mu; closed and replaced with each line
}

// start runs the binary with these arguments and no settings of ours in its
// environment. name tells the processes of a test apart.
func start(t testing.TB, name string, args ...string) *process {
	t.Helper()
	binary := setting(t, "INTEGRATION_RELAY", "build it and name it: make build && export INTEGRATION_RELAY=$PWD/bin/relay")
	p := &process{t: t, name: name, cmd: exec.Command(binary, args...),
		exited: make(chan struct{}), changed: make(chan struct{})}
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(),
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_REGION=us-east-1", "AWS_EC2_METADATA_DISABLED=true"}
	p.cmd.Stdout = &p.stdout
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.exited)
		p.read(bufio.NewReader(stderr))
		p.cmd.Wait() // the end is judged by ProcessState
	}()
	t.Cleanup(p.end)
	return p
}

// read takes lines until stderr is closed.
func (p *process) read(stderr *bufio.Reader) {
	for {
		text, err := stderr.ReadString('\n')
		if text = strings.TrimSuffix(text, "\n"); text != "" {
			l := line{}
			json.Unmarshal([]byte(text), &l) // what is no JSON stays text
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
	deadline := time.After(patience)
	for {
		p.mu.Lock()
		lines, changed := p.lines, p.changed
		p.mu.Unlock()
		for ; next < len(lines); next++ {
			if l := lines[next]; l.Event == event && (matches == nil || matches(l)) {
				return l
			}
		}
		select {
		case <-changed:
		case <-p.exited:
			if p.now() == next {
				p.t.Fatalf("%s ended (%v) without saying %s", p.name, p.cmd.ProcessState, event)
			}
		case <-deadline:
			p.t.Fatalf("%s has not said %s within %v", p.name, event, patience)
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
		"--dynamodb-endpoint", endpoint(t), "--brokers", strings.Join(brokers(t), ","),
		"--lease-duration", "3s", "--lease-renew-interval", "1s", "--max-clock-skew", "200ms",
		"--poll-interval", "100ms", "--error-backoff", "100ms", "--log-format", "json", "--admin-addr", "127.0.0.1:0"}, more...)
}
