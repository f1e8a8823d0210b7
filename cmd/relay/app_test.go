package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/simulation"
	"github.com/bucketbrigade/relay/store"
	"github.com/bucketbrigade/relay/store/memtable"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// noon is when the commands under test run.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// console runs command lines in this process, on a table in memory.
type console struct {
	table  *memtable.DB
	dialed int
	paused int
	// through stands between a command and the table; nil: nothing does.
	through func(store.API) store.API
	// tables is asked about the table; nil: the table itself.
	tables store.TableAPI
	region string           // in effect
	now    func() time.Time // nil: it is noon
	// describe tells how the table is set up; nil: as well as can be.
	describe tableDescriber
	// simulate stands for the simulation; nil: itself.
	simulate func(simulation.Options) simulation.Report
}

// outcome is what a command line left behind.
type outcome struct {
	code           int
	stdout, stderr string
}

func newConsole(t *testing.T) *console {
	t.Helper()
	c := &console{table: memtable.New(memtable.Options{})}
	if got := c.run("table", "create", "--table", "orders"); got.code != exitDone {
		t.Fatalf("create the table: %+v", got)
	}
	return c
}

func (c *console) run(args ...string) outcome { return c.runWith("", nil, args...) }

func (c *console) runWith(stdin string, environ []string, args ...string) outcome {
	var stdout, stderr bytes.Buffer
	a := &app{
		args: args, environ: environ, stdin: strings.NewReader(stdin), stdout: &stdout, stderr: &stderr,
		now:   func() time.Time { return noon },
		pause: func(context.Context, time.Duration) error { c.paused++; return nil },
		dial: func(context.Context, *settings.Settings) (clients, error) {
			c.dialed++
			api := store.API(c.table)
			if c.through != nil {
				api = c.through(api)
			}
			tables := store.TableAPI(c.table)
			if c.tables != nil {
				tables = c.tables
			}
			describe := c.describe
			if describe == nil {
				describe = &setUp{DB: c.table}
			}
			return clients{messages: api, coordination: api, tables: tables, describe: describe, region: c.region}, nil
		},
	}
	if c.now != nil {
		a.now = c.now
	}
	if a.simulate = simulation.Run; c.simulate != nil {
		a.simulate = c.simulate
	}
	code := a.execute(context.Background())
	return outcome{code, stdout.String(), stderr.String()}
}

// golden compares a text with the file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s", path, got)
	}
}

func TestExitCodesTellWhatWentWrong(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, exitDone},
		{errors.New("unknown command"), exitUsage},
		{settings.Faults{{Setting: "table"}}, exitUsage},
		{runError{usageErrorf("region")}, exitUsage},
		{runError{errors.New("broke")}, exitFailed},
		{runError{fmt.Errorf("run: %w", relay.ErrTable)}, exitFailed},
		{runError{fmt.Errorf("run: %w", relay.ErrReplaced)}, exitFailed},
		{runError{fmt.Errorf("run: %w", relay.ErrBucketCount)}, exitBucketCount},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%v: exit %d, want %d", c.err, got, c.want)
		}
	}
}

func TestBadUsageExitsWithTwoAndSaysWhatIsNearest(t *testing.T) {
	c := newConsole(t)
	dialed := c.dialed
	for line, want := range map[string]string{
		"":                                       "which command? see relay --help",
		"mesage":                                 `relay has no command "mesage"; the nearest is message`,
		"message":                                "which command? see relay message --help",
		"message lst":                            `relay message has no command "lst"; the nearest is list`,
		"help mesage":                            `relay has no command "mesage"; the nearest is message`,
		"help message lst":                       `relay message has no command "lst"; the nearest is list`,
		"completion":                             "which command? see relay completion --help",
		"completion bsh":                         `relay completion has no command "bsh"; the nearest is bash`,
		"completion bash now":                    `unknown command "now"`,
		"mesage list --table orders":             `relay has no command "mesage"; the nearest is message`,
		"message lst --bucket 1":                 `relay message has no command "lst"; the nearest is list`,
		"--version":                              "--version: no such flag; there is the command relay version",
		"message --bucket 1":                     "--bucket: no such flag of relay message; see relay message --help",
		"parked -x":                              "-x: no such flag of relay parked; see relay parked --help",
		"message list":                           "--bucket: a bucket is required",
		"message list --limit 0":                 `--limit "0": must be a whole number, 1 or more`,
		"version now":                            `"now": takes no such argument`,
		"version --table t":                      "--table: no such flag",
		"message enqueue --bogus":                "--topic: a topic is required",
		"table iam --table orders":               "--role: a role is required: relay, writer or operator",
		"table iam --role owner":                 `--role "owner": must be one of: relay, writer, operator`,
		"table iam --role relay --account 12":    `--account "12": must be the 12 digits of an AWS account`,
		"demo --messages many":                   `--messages "many": must be a whole number, 1 or more`,
		"message list --table orders --bucket 8": "--bucket 8: the outbox has the buckets 0 to 7",
		"doctor --table orders --repair-sequence":                            "--bucket: --repair-sequence needs the bucket",
		"doctor --table orders --yes":                                        "--yes: goes with --repair-sequence only",
		"doctor --table orders --bucket 8":                                   "--bucket 8: the outbox has the buckets 0 to 7",
		"doctor --table orders --repair-sequence --bucket 1 --yes --dry-run": "--dry-run: give one of --yes and --dry-run",
		"message enqueue --table orders --topic t --value v -":               "--value: give one of --value, --value-file and -",
		"message enqueue --table orders --topic t --value-file /no":          "--value-file: the file cannot be read: no such file",
	} {
		got := c.run(strings.Fields(line)...)
		if got.code != exitUsage || !strings.Contains(got.stderr, want) || got.stdout != "" {
			t.Errorf("relay %s: exit %d, stdout %q, stderr:\n%s", line, got.code, got.stdout, got.stderr)
		}
	}
	if c.dialed != dialed {
		t.Error("a client was made for a command that could not run")
	}
}

// With wrong settings nothing is sent, and all that is wrong is said at once
// (issue 3, point 11).
func TestWrongSettingsSendNoRequest(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer server.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "key")
	var stdout, stderr bytes.Buffer
	code := execute(context.Background(),
		[]string{"run", "--dynamodb-endpoint", server.URL, "--lease-duration=30", "--kafka=acks=1"},
		[]string{"RELAY_BATCH_SIZE=0", "RELAY_TABEL=orders", "RELAY_KAFKA_SASL_PASSWORD=hunter2"},
		strings.NewReader(""), &stdout, &stderr)
	if code != exitUsage || requests.Load() != 0 || stdout.Len() != 0 {
		t.Errorf("exit %d, %d requests, stdout %q", code, requests.Load(), stdout.String())
	}
	golden(t, "wrong_settings.txt", stderr.String())
}

func TestHelpFitsTheWidth(t *testing.T) {
	c := newConsole(t)
	commands := leaves((&app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard}).root())
	for _, command := range append(commands, "", "table", "message", "parked", "lease") {
		got := c.run(append(strings.Fields(command), "--help")...)
		if got.code != exitDone || got.stderr != "" {
			t.Errorf("relay %s --help: exit %d, stderr %q", command, got.code, got.stderr)
		}
		for line := range strings.Lines(got.stdout) {
			if len([]rune(strings.TrimRight(line, "\n"))) > textColumns {
				t.Errorf("relay %s --help: too wide: %s", command, line)
			}
		}
	}
	golden(t, "help_run.txt", c.run("run", "--help").stdout)
	golden(t, "help_run.txt", c.run("help", "run").stdout)
}

// full is a place that takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// A result that nobody got is a failure, whichever command printed it: those of cobra too.
func TestAResultThatCannotBePrintedIsAFailure(t *testing.T) {
	for _, line := range []string{"version", "version --output json", "cost", "reference markdown", "completion bash", "completion zsh", "--help", "help cost"} {
		var stderr strings.Builder
		code := execute(context.Background(), strings.Fields(line), nil, strings.NewReader(""), full{}, &stderr)
		if code != exitFailed || !strings.Contains(stderr.String(), "print the result: no space left on device") {
			t.Errorf("relay %s: exit %d, %s", line, code, stderr.String())
		}
	}
}

func TestCompletionIsThere(t *testing.T) {
	if got := newConsole(t).run("completion", "bash"); got.code != exitDone || !strings.Contains(got.stdout, "bash completion") {
		t.Errorf("exit %d, stderr %q", got.code, got.stderr)
	}
}

func TestVersionSaysWhatItIs(t *testing.T) {
	c := newConsole(t)
	if got := c.run("version"); got.code != exitDone || !strings.HasPrefix(got.stdout, "relay ") {
		t.Errorf("%+v", got)
	}
	var document versionDocument
	if err := json.Unmarshal([]byte(c.run("version", "--output", "json").stdout), &document); err != nil || document.Go == "" {
		t.Errorf("%+v, %v", document, err)
	}
}

func TestCreatingATableTwiceIsFine(t *testing.T) {
	c := newConsole(t)
	got := c.run("table", "create", "--table", "orders")
	if want := "table orders is active, with keys PK and SK\n"; got.code != exitDone || got.stdout != want {
		t.Errorf("%+v", got)
	}
	got = c.run("table", "create", "--table", "orders", "--output=json")
	if got.code != exitDone || !json.Valid([]byte(got.stdout)) {
		t.Errorf("%+v", got)
	}
}

func TestATableWithOtherKeysIsNamedWithWhatToDo(t *testing.T) {
	got := newConsole(t).run("table", "create", "--table", "orders", "--sort-key", "Sort")
	if got.code != exitFailed || !strings.Contains(got.stderr, "table orders must have the string keys PK (partition) and Sort (sort)") {
		t.Errorf("%+v", got)
	}
}

func TestAMissingTableIsNamedWithWhatToDo(t *testing.T) {
	c := &console{table: memtable.New(memtable.Options{})}
	got := c.run("message", "list", "--table", "orders", "--bucket", "0")
	if got.code != exitFailed || !strings.Contains(got.stderr, "create it with: relay table create --table orders") {
		t.Errorf("%+v", got)
	}
}

// The two lanes must not share what throttling uses up (case D-11), and no
// request may outlive a lease.
func TestTheLanesAreClientsOfTheirOwn(t *testing.T) {
	s := settings.Defaults()
	s.Region = "eu-central-1"
	made, err := dialDynamoDB(context.Background(), &s)
	if err != nil {
		t.Fatal(err)
	}
	var _, _ store.API = made.messages, made.coordination
	if made.messages == made.coordination {
		t.Error("messages and coordination share a client")
	}
}

func TestARegionIsNeededButNotForAnEmulator(t *testing.T) {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	for _, name := range []string{"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"} {
		t.Setenv(name, filepath.Join(t.TempDir(), "none"))
	}
	s := settings.Defaults()
	if _, err := dialDynamoDB(context.Background(), &s); !errors.As(err, new(usageError)) {
		t.Errorf("no region anywhere: %v", err)
	}
	s.Endpoint = "http://localhost:8000"
	if _, err := dialDynamoDB(context.Background(), &s); err != nil {
		t.Errorf("an emulator: %v", err)
	}
}
