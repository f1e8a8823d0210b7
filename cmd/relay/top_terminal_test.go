//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/store"
)

// terminal is a pseudo terminal: what is typed on one side, the command has on the other.
type terminal struct {
	*testing.T
	person, command *os.File

	mutex  sync.Mutex
	shown  bytes.Buffer // all that was ever written
	wanted func(written string) bool
	seen   chan struct{} // closed when what is wanted was written
	ended  chan struct{} // closed when nothing more comes
}

func newTerminal(t *testing.T, columns, lines uint16) *terminal {
	person, command, err := pty.Open()
	if err != nil {
		t.Skipf("no pseudo terminal here: %v", err)
	}
	term := &terminal{T: t, person: person, command: command, ended: make(chan struct{})}
	term.resize(columns, lines)
	go term.read()
	t.Cleanup(func() {
		_ = command.Close()
		_ = person.Close()
		<-term.ended
	})
	return term
}

func (t *terminal) resize(columns, lines uint16) {
	if err := pty.Setsize(t.person, &pty.Winsize{Cols: columns, Rows: lines}); err != nil {
		t.Fatal(err)
	}
}

func (t *terminal) read() {
	defer close(t.ended)
	chunk := make([]byte, 4096)
	for {
		n, err := t.person.Read(chunk)
		t.mutex.Lock()
		t.shown.Write(chunk[:n])
		t.notice()
		t.mutex.Unlock()
		if err != nil {
			return
		}
	}
}

func (t *terminal) notice() {
	if t.seen != nil && t.wanted(t.shown.String()) {
		close(t.seen)
		t.seen = nil
	}
}

// await waits until a text was written.
func (t *terminal) await(text string) {
	t.Helper()
	t.awaitThat(text, func(written string) bool { return strings.Contains(ansi.Strip(written), text) })
}

func (t *terminal) awaitThat(what string, wanted func(written string) bool) {
	t.Helper()
	seen := make(chan struct{})
	t.mutex.Lock()
	t.wanted, t.seen = wanted, seen
	t.notice()
	t.mutex.Unlock()
	select {
	case <-seen:
	case <-t.ended:
		t.Fatalf("the terminal was closed before: %s", what)
	}
}

// written is all that was ever written, with what steers the terminal.
func (t *terminal) written() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.shown.String()
}

func (t *terminal) state() unix.Termios {
	t.Helper()
	state, err := unix.IoctlGetTermios(int(t.command.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *state
}

// start runs top on the terminal, on the console's table, until it is told to end.
func (t *terminal) start(ctx context.Context, c *console, args ...string) (code <-chan int) {
	ended := make(chan int, 1)
	api := store.API(c.table)
	if c.through != nil {
		api = c.through(api)
	}
	a := &app{
		args: append([]string{"top", "--table", "orders"}, args...), environ: []string{"TERM=xterm-256color"},
		stdin: t.command, stdout: t.command, stderr: t.command,
		now: func() time.Time { return noon }, pause: pause,
		dial: func(context.Context, *settings.Settings) (clients, error) {
			return clients{messages: api, coordination: api, tables: c.table}, nil
		},
	}
	go func() { ended <- a.execute(ctx) }()
	return ended
}

// wantRestored demands that the terminal is as it was: not in raw mode, on its own
// screen, with a cursor.
func (t *terminal) wantRestored(before unix.Termios) {
	t.Helper()
	if after := t.state(); !reflect.DeepEqual(before, after) {
		t.Errorf("the terminal was %+v and is %+v", before, after)
	}
	for on, off := range map[string]string{"\x1b[?1049h": "\x1b[?1049l", "\x1b[?25l": "\x1b[?25h"} {
		t.awaitThat("what takes back "+on[1:], func(written string) bool {
			return strings.LastIndex(written, off) > strings.LastIndex(written, on)
		})
	}
}

func TestTopOnATerminal(t *testing.T) {
	term := newTerminal(t, 80, 24)
	before := term.state()
	ended := term.start(t.Context(), troubled(t))
	term.await("24 messages wait")
	if !strings.Contains(term.written(), "\x1b[?1049h") || reflect.DeepEqual(before, term.state()) {
		t.Error("it is not on the whole screen")
	}
	if _, err := term.person.WriteString("t"); err != nil {
		t.Fatal(err)
	}
	term.await("see the owner's log or /status, and relay doctor")
	term.resize(120, 30)
	// The kernel tells the processes of a terminal, of which the test is none.
	if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	term.await("say --bucket-count 16; if not, the writer is wrong and no relay passes such a row")
	if _, err := term.person.WriteString("q"); err != nil {
		t.Fatal(err)
	}
	if code := <-ended; code != exitDone {
		t.Errorf("exit %d", code)
	}
	term.wantRestored(before)
}

// hanging never answers, until it is not waited for any more.
type hanging struct {
	store.API
	asked chan struct{}
}

func (h hanging) Query(ctx context.Context, _ *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	select {
	case h.asked <- struct{}{}:
	default:
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// SIGINT and SIGTERM end the context of the command; a request that hangs delays nothing.
func TestTopEndsWithASignalWhileTheTableHangs(t *testing.T) {
	c := newConsole(t)
	asked := make(chan struct{}, 1)
	c.through = func(api store.API) store.API { return hanging{api, asked} }
	term := newTerminal(t, 80, 24)
	before := term.state()
	ctx, signalled := context.WithCancel(t.Context())
	ended := term.start(ctx, c)
	<-asked
	term.await("reading the table ...")
	signalled()
	if code := <-ended; code != exitDone {
		t.Errorf("exit %d", code)
	}
	term.wantRestored(before)
}

func TestTopWithoutATerminalPrintsOnePicture(t *testing.T) {
	c := troubled(t)
	top, status := c.run("top", "--table", "orders"), c.run("status", "--table", "orders")
	if top != status || top.code != exitDone || !strings.Contains(top.stdout, "24 messages wait") {
		t.Errorf("top: %+v\nstatus: %+v", top, status)
	}
}
