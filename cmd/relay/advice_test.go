package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/store"
)

// Every command that cannot ask the table for want of credentials says so in the same
// words, whichever client it asks through.
func TestEveryCommandWithoutCredentialsSaysWhatToDo(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ROLE_ARN",
		"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"} {
		t.Setenv(name, "")
	}
	for _, name := range []string{"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"} {
		t.Setenv(name, filepath.Join(t.TempDir(), "none"))
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	for _, lines := range linesThatAsk(t) {
		var stdout, stderr strings.Builder
		code := execute(t.Context(), append(strings.Fields(lines[0]), "--dynamodb-endpoint", "http://127.0.0.1:1"), nil, strings.NewReader(""), &stdout, &stderr)
		said := strings.Join(strings.Fields(stdout.String()+stderr.String()), " ")
		if code != exitFailed || !strings.Contains(said, "check region, dynamodb-endpoint, the network, and that the SDK's chain finds credentials") {
			t.Errorf("relay %s: exit %d\n%s\n%s", lines[0], code, &stdout, &stderr)
		}
	}
}

// So with a table that is not there.
func TestEveryCommandWithoutATableSaysWhatToDo(t *testing.T) {
	c := newConsole(t)
	for command, lines := range linesThatAsk(t) {
		if command == "table create" {
			continue
		}
		got := c.run(append(strings.Fields(lines[0]), "--table", "missing")...)
		said := strings.Join(strings.Fields(got.stdout+got.stderr), " ")
		if got.code != exitFailed || !strings.Contains(said, "correct table, region or dynamodb-endpoint, or create it with: relay table create --table missing") {
			t.Errorf("relay %s: %+v", lines[0], got)
		}
	}
}

// What ends a relay for good says what to do, in lines that fit, none of them broken within
// what is to be typed.
func TestWhatEndsARelaySaysWhatToDo(t *testing.T) {
	s := settings.Defaults()
	for end, want := range map[error][]string{
		relay.ErrReplaced:     {"give each relay a relay-id of its own"},
		relay.ErrBucketCount:  {"nothing of that bucket was deleted since", "relay message park with that --bucket and --sequence says what to do"},
		store.ErrTableMissing: {"relay table create --table "},
	} {
		said := advised(fmt.Errorf("run: %w", end), &s).Error()
		for _, text := range want {
			if !strings.Contains(said, text) {
				t.Errorf("no %q in %s", text, said)
			}
		}
		for _, line := range strings.Split(said, "\n") {
			if len(line) > textColumns {
				t.Errorf("%d columns: %s", len(line), line)
			}
		}
	}
}
