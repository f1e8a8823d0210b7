package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/bucketbrigade/relay/store"
)

// leaves are the command lines, without arguments, of all commands that do something.
func leaves(root *cobra.Command) []string {
	var lines []string
	for _, child := range root.Commands() {
		if child.HasSubCommands() {
			lines = append(lines, leaves(child)...)
		} else {
			lines = append(lines, strings.TrimPrefix(child.CommandPath(), "relay "))
		}
	}
	return lines
}

// canaryLines are command lines for each command: what it prints of a canaryTable, as
// text and as JSON, what it would send, and what it sends.
func canaryLines(t *testing.T) map[string][]string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "value")
	if err := os.WriteFile(file, []byte(canaryValue), 0o600); err != nil {
		t.Fatal(err)
	}
	enqueue := "--table orders --topic placed --key " + canaryKey + " --header " + canaryHeaderName + "=" + canaryHeaderValue
	return map[string][]string{
		"status":               {"--table orders --all --cost", "--table orders --output json"},
		"top":                  {"--table orders"},
		"table create":         {"--table orders", "--table orders --output json"},
		"table show":           {"--table orders", "--table orders --output json"},
		"table iam":            {"--table orders --role operator", "--table orders --role relay --output text"},
		"table cloudformation": {"--table orders"},
		"table terraform":      {"--table orders"},
		"doctor":               {"--table orders", "--table orders --output json", "--table orders --repair-sequence --bucket 0 --yes"},
		"message enqueue": {
			enqueue + " --value " + canaryValue, enqueue + " --output json --value-file " + file, enqueue + " -",
			enqueue + " --partition 9 --value " + canaryValue,
		},
		"message list": {"--table orders --bucket 0", "--table orders --bucket 3", "--table orders --bucket 4", "--table orders --bucket 5",
			"--table orders --bucket 6", "--table orders --bucket 1 --output json"},
		"message park": {"--table orders --bucket 3 --sequence 1 --dry-run", "--table orders --bucket 3 --sequence 1 --yes",
			"--table orders --bucket 0 --sequence 1 --output json --yes", "--table orders --topic placed --yes"},
		"parked list": {"--table orders", "--table orders --output json"},
		"parked show": {"--table orders " + canaryKeyID(), "--table orders --output json " + canaryKeyID()},
		"parked retry": {"--table orders --dry-run " + canaryKeyID(), "--table orders --yes --output json " + canaryKeyID(),
			"--table orders --all --yes"},
		"parked discard": {"--table orders --dry-run " + canaryKeyID() + " 1", "--table orders --yes " + canaryKeyID() + " 1",
			"--table orders --yes --output json " + canaryKeyID() + " 2"},
		"pause": {"--table orders --all --reason look --dry-run", "--table orders --bucket 0 --reason look --for 1h --yes --output json",
			"--table orders --topic placed --reason look --yes"},
		"resume":        {"--table orders --all --yes", "--table orders --topic placed --yes --output json", "--table orders --bucket 0 --dry-run"},
		"lease list":    {"--table orders", "--table orders --output json"},
		"lease release": {"--table orders --bucket 0 --dry-run", "--table orders --bucket 0 --yes --output json"},
		"cost":          {"", "--rate 10 --output json"},
		"version":       {"", "--output json"},
	}
}

// withoutContent are the commands whose outputs have tests of their own here, or have
// no table to read.
func withoutContent() []string {
	return []string{"run", "demo", "simulate", "reference man", "reference markdown"}
}

// No command shows a key, a value or a header unless it is told to, whatever the rows
// are like, and whether the table takes its requests or not.
func TestCanariesOfCommands(t *testing.T) {
	lines := canaryLines(t)
	var known []string
	for _, command := range leaves((&app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard}).root()) {
		if known = append(known, command); len(lines[command]) == 0 && !slices.Contains(withoutContent(), command) {
			t.Errorf("relay %s: canaryLines has no line for it: add those with which it prints most", command)
		}
	}
	for command, arguments := range lines {
		if !slices.Contains(known, command) {
			t.Errorf("relay %s is no command", command)
			continue
		}
		t.Run(command, func(t *testing.T) {
			for _, argument := range arguments {
				line := command + " " + argument
				for _, c := range []*console{canaryTable(t), reluctant(canaryTable(t))} {
					got := c.runWith(canaryValue, []string{"RELAY_KAFKA_SASL_PASSWORD=" + canaryPassword}, strings.Fields(line)...)
					if got.code == exitUsage {
						t.Errorf("relay %s did not run: %s", line, got.stderr)
					}
					mustNotLeak(t, "relay "+line, got.stdout+got.stderr)
				}
			}
		})
	}
}

// reluctant is a console whose table fails the first requests.
func reluctant(c *console) *console {
	var once *grudging
	c.through = func(api store.API) store.API {
		if once == nil {
			once = newGrudging(api)
		}
		return once
	}
	return c
}

// With the flag that asks for content it is shown: the test above looks at commands
// that could show it.
func TestContentIsShownWhenAskedFor(t *testing.T) {
	for _, line := range []string{"message list --table orders --bucket 0 --show-content", "parked show --table orders --show-content " + canaryKeyID()} {
		if got := canaryTable(t).run(strings.Fields(line)...); len(leaks(got.stdout)) != 4 {
			t.Errorf("relay %s shows only %v:\n%s", line, leaks(got.stdout), got.stdout)
		}
	}
}

// A command line that is wrong may have content in the wrong place; the complaint does
// not repeat it, since complaints end up in the logs of build servers.
func TestCanariesOfWrongCommandLines(t *testing.T) {
	c := canaryTable(t)
	for _, line := range []string{
		"message enqueue --table orders --topic placed " + canaryValue,
		"message enqueue --table orders --topic placed --vlaue=" + canaryValue,
		"message enqueue --table orders --topic placed --vlaue " + canaryValue,
		"message enqueue --table orders --topic placed --hedaer " + canaryHeaderName + "=" + canaryHeaderValue,
		"message enqueue --table orders --topic placed --hedaer=" + canaryHeaderName + "=" + canaryHeaderValue,
		"message enqueue --table orders --topic placed --key=" + canaryKey + " --value " + canaryValue + " --value-file /none",
		"message enqueue --topic placed --key " + canaryKey + " --value " + canaryValue,
		"run --table orders --kafka sasl.password:" + canaryPassword,
		"run --table orders --kafka sasl.pasword=" + canaryPassword,
		"run --table orders --brokers SASL://user:" + canaryPassword + "@host:9092",
		"run --table orders --sasl-password=" + canaryPassword,
		"run --table orders --brokers b --admin-token " + canaryToken,
		"run --table orders --brokers b --admin-token=" + canaryToken,
		"run --table orders --brokers b --dynamodb-endpoint http://user:" + canaryAWS + "@host",
	} {
		got := c.runWith("", []string{"RELAY_KAFAK_SASL_PASSWORD=" + canaryPassword, "RELAY_ADMIN_TOKEN=" + canaryToken}, strings.Fields(line)...)
		if got.code != exitUsage {
			t.Errorf("relay %s: exit %d", line, got.code)
		}
		mustNotLeak(t, "relay "+line, got.stdout+got.stderr)
	}
}

// What should be in a file may be given in place of its name.
func TestCanariesInPlaceOfFiles(t *testing.T) {
	for _, line := range []string{
		"message enqueue --topic placed --value-file " + canaryValue,
		"run --brokers b --admin-addr 127.0.0.1:0 --admin-token-file " + canaryToken,
		"run --brokers b --kafka sasl.password.file=" + canaryPassword,
	} {
		got := canaryTable(t).run(append(strings.Fields(line), "--table", "orders")...)
		if got.code != exitUsage || !strings.Contains(got.stderr, "the file cannot be read: no such file") {
			t.Errorf("relay %s: %+v", line, got)
		}
		mustNotLeak(t, "relay "+line, got.stdout+got.stderr)
	}
}

// DynamoDB refuses our credentials: what is said of it does not have them, nor what was
// signed with them.
func TestCanariesOfRefusedAWSCredentials(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type":"com.amazon.coral.service#UnrecognizedClientException","message":"The security token included in the request is invalid."}`)
	}))
	defer server.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", canaryAWS)
	t.Setenv("AWS_SESSION_TOKEN", canaryAWS)
	for _, line := range []string{"message list --bucket 0", "run --admin-addr off --brokers 127.0.0.1:1 --log-level trace"} {
		var stdout, stderr strings.Builder
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		code := execute(ctx, append(strings.Fields(line), "--table", "orders", "--region", "eu-central-1", "--dynamodb-endpoint", server.URL),
			[]string{"AWS_SECRET_ACCESS_KEY=" + canaryAWS}, strings.NewReader(""), &stdout, &stderr)
		if code != exitFailed || !strings.Contains(stderr.String(), "access denied") {
			t.Errorf("relay %s: exit %d: %s", line, code, stderr.String())
		}
		mustNotLeak(t, "relay "+line, stdout.String()+stderr.String())
	}
}
