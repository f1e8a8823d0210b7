package main

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/spf13/cobra"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/kafka"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// authorizer stands before a table and remembers which of IAM's actions the requests
// would have needed.
type authorizer struct {
	store.API
	store.TableAPI

	mu     sync.Mutex
	needed map[string]bool // guarded by mu
}

func authorize(table interface {
	store.API
	store.TableAPI
}) *authorizer {
	return &authorizer{API: table, TableAPI: table, needed: map[string]bool{}}
}

func (a *authorizer) need(actions ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, action := range actions {
		a.needed[action] = true
	}
}

func (a *authorizer) actions() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(maps.Keys(a.needed))
}

func (a *authorizer) Query(ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	a.need(actionQuery)
	return a.API.Query(ctx, in, opts...)
}

func (a *authorizer) PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	a.need(actionPut)
	return a.API.PutItem(ctx, in, opts...)
}

func (a *authorizer) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	a.need(actionUpdate)
	return a.API.UpdateItem(ctx, in, opts...)
}

func (a *authorizer) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	a.need(actionDelete)
	return a.API.DeleteItem(ctx, in, opts...)
}

func (a *authorizer) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	a.need(actionBatchWrite)
	return a.API.BatchWriteItem(ctx, in, opts...)
}

// A transaction needs the action of each thing that it does, and none for itself.
func (a *authorizer) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	for _, item := range in.TransactItems {
		switch {
		case item.Put != nil:
			a.need(actionPut)
		case item.Update != nil:
			a.need(actionUpdate)
		case item.Delete != nil:
			a.need(actionDelete)
		case item.ConditionCheck != nil:
			a.need(actionConditionCheck)
		}
	}
	return a.API.TransactWriteItems(ctx, in, opts...)
}

func (a *authorizer) CreateTable(ctx context.Context, in *dynamodb.CreateTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error) {
	a.need("dynamodb:CreateTable")
	return a.TableAPI.CreateTable(ctx, in, opts...)
}

func (a *authorizer) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	a.need(actionDescribe)
	return a.TableAPI.DescribeTable(ctx, in, opts...)
}

func (a *authorizer) DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	a.need(actionDescribeExpiry)
	return &dynamodb.DescribeTimeToLiveOutput{TimeToLiveDescription: &types.TimeToLiveDescription{TimeToLiveStatus: types.TimeToLiveStatusDisabled}}, nil
}

// wantActions compares what was needed with what the role's policy has: neither may be
// more than the other.
func wantActions(t *testing.T, needed []string, of role) {
	t.Helper()
	if has := slices.Sorted(slices.Values(actions(of))); !slices.Equal(needed, has) {
		t.Errorf("the %s needed\n  %v\nits policy has\n  %v", of, needed, has)
	}
}

// A relay that starts, publishes, sets a key aside, delivers it after all, prunes and
// stops needs exactly its policy: no DescribeTable, and ConditionCheckItem for what it
// sets aside.
func TestARelayNeedsWhatItsPolicyHas(t *testing.T) {
	c := newConsole(t)
	c.now = time.Now // an owner hears the bell when it shows another time
	c.waits(t, 7)
	c.waits(t, 8)
	c.put(t, schema.EncodeMessage(outbox.NewMessage("placed", []byte("other key"), nil), 3, 9))
	if got := c.run("message", "park", "--table", "orders", "--bucket=3", "--sequence=7", "--yes"); got.code != exitDone {
		t.Fatalf("%+v", got)
	}
	broker, err := kafka.StartMock(kafka.Topic{Name: "placed", Partitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	seen := map[string]bool{}
	retry := make(chan struct{})
	stderr := &stderrLines{on: func(event string) {
		if event == "rows.moved" && !seen[event] {
			close(retry)
		}
		seen[event] = true
		if seen["key.retried"] && seen["batch.removed"] {
			stop()
		}
	}}
	retried := make(chan outcome, 1)
	go func() {
		select {
		case <-retry:
			retried <- c.run("parked", "retry", "--table", "orders", "--all", "--yes")
		case <-ctx.Done():
			retried <- outcome{code: exitFailed, stderr: "nothing was set aside"}
		}
	}()
	table := authorize(c.table)
	a := &app{
		args: []string{"run", "--table", "orders", "--brokers", strings.Join(broker.Config().Brokers, ","), "--log-level", "trace",
			"--admin-addr", "off", "--poll-interval", "50ms", "--lease-duration", "3s", "--lease-renew-interval", "100ms"},
		stdout: io.Discard, stderr: stderr, now: time.Now,
		dial: func(context.Context, *settings.Settings) (clients, error) {
			return clients{messages: table, coordination: table, tables: table, region: "nowhere"}, nil
		},
	}
	code := a.execute(ctx)
	if got := <-retried; code != exitDone || got.code != exitDone {
		t.Fatalf("the relay ended with %d, the retry with %+v:\n%s", code, got, stderr)
	}
	wantActions(t, table.actions(), roleRelay)
}

// A writer needs exactly its policy, whichever way it writes.
func TestAWriterNeedsWhatItsPolicyHas(t *testing.T) {
	table := authorize(newConsole(t).table)
	w, err := outbox.NewWriter(table, outbox.Options{Table: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	for _, write := range []func() error{
		func() error { return w.Enqueue(t.Context(), outbox.NewMessage("placed", nil, nil)) },
		func() error { return w.Enqueue(t.Context(), into3(), into3()) },
		func() error { return w.Commit(t.Context(), &dynamodb.TransactWriteItemsInput{}, into3()) },
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	wantActions(t, table.actions(), roleWriter)
}

// operatorsLines are command lines of all commands of an operator, for an outbox with a
// key that is set aside, and a row that cannot be read.
func operatorsLines(keyID string) map[string][]string {
	return map[string][]string{
		"table show":      {""},
		"table iam":       {"--role relay"},
		"doctor":          {"--role operator", "--repair-sequence --bucket 3 --yes"},
		"status":          {""},
		"top":             {""},
		"message enqueue": {"--topic placed --key k --value v"},
		"message list":    {"--bucket 5"},
		"message park":    {"--bucket 3 --sequence 8 --yes", "--topic plcaed --yes"},
		"parked list":     {""},
		"parked show":     {keyID},
		"parked retry":    {keyID + " --yes"},
		"parked discard":  {keyID + " 41 --yes"},
		"pause":           {"--all --reason look --yes", "--topic late --reason look --yes"},
		"resume":          {"--all --yes", "--topic late --yes"},
		"lease list":      {""},
		"lease release":   {"--bucket 6 --yes"},
	}
}

// notOnATable are the commands that need no operator's credentials, and why.
func notOnATable() map[string]string {
	return map[string]string{
		"run":                  "has a role of its own",
		"demo":                 "brings its own table",
		"simulate":             "has no table",
		"version":              "asks nobody",
		"reference man":        "only writes files",
		"reference markdown":   "only prints",
		"cost":                 "asks nobody",
		"table create":         "names what it needs in its help",
		"table cloudformation": "only prints",
		"table terraform":      "only prints",
	}
}

// All commands of an operator together need exactly the operator's policy; a new command
// must be added here, or the policy may lack what it needs.
func TestAnOperatorNeedsWhatThePolicyHas(t *testing.T) {
	c := newConsole(t)
	keyID := outbox.ParkedKeyID(&outbox.Message{Topic: "placed", Key: []byte("k")})
	c.setAside(t, 3, store.Marker{KeyID: keyID, Topic: "placed", Reason: "MSG_SIZE_TOO_LARGE", ParkedAt: ago(time.Hour)})
	c.putAside(t, 3, keyID, 41, into3())
	c.waits(t, 7)
	unreadable := schema.EncodeMessage(into3(), 3, 8)
	delete(unreadable, outbox.AttrCreatedAtUtc)
	c.put(t, unreadable)
	c.do(t, store.Claim{Bucket: 6, Relay: "gone", Incarnation: "gone-1", Claim: 1, Now: 1, Expires: ago(time.Hour)})
	lines := operatorsLines(keyID)
	table := authorize(c.table)
	c.through, c.tables, c.describe = func(store.API) store.API { return table }, table, table
	for _, command := range commandsOf((&app{}).root()) {
		_, elsewhere := notOnATable()[command]
		if _, ours := lines[command]; ours == elsewhere {
			t.Errorf("relay %s: must be either in operatorsLines or in notOnATable", command)
		}
		for _, line := range lines[command] {
			args := append(strings.Fields(command), strings.Fields(line)...)
			if got := c.run(append(args, "--table", "orders")...); got.code != exitDone && command != "doctor" {
				t.Errorf("relay %s %s: %+v", command, line, got)
			}
		}
	}
	wantActions(t, table.actions(), roleOperator)
}

// commandsOf are all commands that do something, without the name of the program.
func commandsOf(root *cobra.Command) []string {
	var names []string
	for _, child := range root.Commands() {
		if child.HasSubCommands() {
			names = append(names, commandsOf(child)...)
			continue
		}
		_, name, _ := strings.Cut(child.CommandPath(), " ")
		names = append(names, name)
	}
	return names
}

// Whoever creates a table by command needs the two actions that its help names.
func TestCreatingATableNeedsWhatItsHelpNames(t *testing.T) {
	c := newConsole(t)
	table := authorize(c.table)
	c.tables = table
	if got := c.run("table", "create", "--table", "others"); got.code != exitDone {
		t.Fatalf("%+v", got)
	}
	help := c.run("table", "create", "--help").stdout
	for _, action := range table.actions() {
		if !strings.Contains(help, action) {
			t.Errorf("the help does not name %s", action)
		}
	}
}
