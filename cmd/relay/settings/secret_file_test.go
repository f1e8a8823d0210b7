package settings_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/kafka"
)

// secretFile is a file with that content.
func secretFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A secret can stand in a file, whichever way the file is named; what people see is
// the file.
func TestPropertiesAreReadFromFiles(t *testing.T) {
	path := secretFile(t, " hunter2 \n")
	for from, given := range map[string]struct {
		args, environ []string
		file          string
	}{
		"a flag":     {args: []string{"--kafka", "sasl.password.file=" + path}},
		"a variable": {environ: []string{"RELAY_KAFKA_SASL_PASSWORD_FILE=" + path}},
		"the file":   {file: "kafka:\n  sasl.password.file: " + path + "\n"},
	} {
		l, err := load(t, all, append(given.args, enough...), given.environ, given.file)
		if err != nil {
			t.Errorf("%s: %v", from, err)
			continue
		}
		if got := l.Settings.Kafka.Properties; len(got) != 1 || got["sasl.password"] != " hunter2 " {
			t.Errorf("%s: properties %q", from, got)
		}
		var shown string
		for _, s := range l.Settings.Effective(all) {
			if strings.HasPrefix(s.Name, "kafka.") {
				shown += s.Name + "=" + s.Value
			}
		}
		if shown != "kafka.sasl.password.file="+path {
			t.Errorf("%s: shown as %s", from, shown)
		}
	}
}

// Only the line break goes that an editor or echo has put at the end; a file of
// several lines, as a certificate, stays one.
func TestOnlyTheLastLineBreakOfASecretGoes(t *testing.T) {
	for content, want := range map[string]string{
		"a": "a", "a\n": "a", "a\r\n": "a", "a\n\n": "a\n", "a\nb\n": "a\nb", "\ta ": "\ta ",
	} {
		l, err := load(t, all, append([]string{"--kafka", "sasl.password.file=" + secretFile(t, content)}, enough...), nil, "")
		if err != nil || l.Settings.Kafka.Properties["sasl.password"] != want {
			t.Errorf("%q is read as %q, %v", content, l.Settings.Kafka.Properties["sasl.password"], err)
		}
	}
}

// What is wrong with a file is said with where it was named, and with nothing of what
// is in it. Its name may be the secret itself, given where the file's was wanted.
func TestFaultsOfSecretFiles(t *testing.T) {
	directory := t.TempDir()
	for _, c := range []struct{ property, path, environ, want string }{
		{"sasl.password", filepath.Join(directory, "hunter2"), "", "kafka sasl.password.file=(redacted): the file cannot be read: no such file or directory (from --kafka sasl.password.file)"},
		{"sasl.password", directory, "", "the file cannot be read: it is no plain file"},
		{"sasl.password", secretFile(t, "\n"), "", "the file is empty"},
		{"sasl.password", secretFile(t, "hunter2\x00"), "", "the file has a zero byte"},
		{"sasl.password", secretFile(t, strings.Repeat("hunter2 ", 8<<10)+"!"), "", "the file has more than 65536 bytes"},
		{"sasl.password", secretFile(t, "s"), "RELAY_KAFKA_SASL_PASSWORD=hunter2", "kafka sasl.password: is set too (from RELAY_KAFKA_SASL_PASSWORD): set one of the two (from --kafka sasl.password.file)"},
		{"linger.ms", secretFile(t, "hunter2\n"), "", "kafka linger.ms=(redacted): "},
		{"no.such.property", secretFile(t, "hunter2\n"), "", "no.such.property"},
		{"acks", secretFile(t, "hunter2\n"), "", "kafka acks=(redacted): refused"},
	} {
		_, err := load(t, all, append([]string{"--kafka", c.property + ".file=" + c.path}, enough...), []string{c.environ}, "")
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v\nwant %s", c.property, err, c.want)
		}
	}
}

// A file may be readable for relays alone: a command that reaches no broker does
// without it.
func TestOnlyWhoReachesBrokersReadsSecretFiles(t *testing.T) {
	environ := []string{"RELAY_KAFKA_SASL_PASSWORD_FILE=/none"}
	if _, err := load(t, settings.Table, []string{"--table", "orders"}, environ, ""); err != nil {
		t.Errorf("a command of the table: %v", err)
	}
	if _, err := load(t, settings.Table|settings.Brokers, enough, environ, ""); err == nil {
		t.Error("a command that needs it did not miss it")
	}
}

// Properties of librdkafka's own that name a file reach it as they are.
func TestLibrdkafkasOwnFilesAreItsOwn(t *testing.T) {
	for _, name := range []string{"sasl.oauthbearer.assertion.file", "sasl.oauthbearer.assertion.jwt.template.file", "sasl.oauthbearer.assertion.private.key.file"} {
		l, err := load(t, settings.Table|settings.Brokers, append([]string{"--kafka", name + "=/none"}, enough...), nil, "")
		if err != nil || l.Settings.Kafka.Properties[name] != "/none" {
			t.Errorf("%s: %q, %v", name, l.Settings.Kafka.Properties, err)
		}
	}
	// And of those that we take for ours it has none: it would be out of reach.
	for _, name := range []string{"sasl.password.file", "ssl.key.pem.file", "ssl.key.password.file"} {
		if err := (kafka.Config{Brokers: []string{"a:1"}, Properties: map[string]string{name: "/none"}}).Validate(); err == nil {
			t.Errorf("librdkafka has a property %s of its own", name)
		}
	}
}
