package main

import (
	"path/filepath"
	"strings"
	"testing"
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
