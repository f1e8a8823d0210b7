package settings_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
)

const all = settings.Table | settings.Brokers | settings.Relay | settings.Admin | settings.Log

// load reads a command line, variables and, when file is not empty, a file
// relay.yaml with that content.
func load(t *testing.T, groups settings.Group, args, environ []string, file string) (*settings.Loader, error) {
	t.Helper()
	if file != "" {
		path := filepath.Join(t.TempDir(), "relay.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append([]string{"--config", path}, args...)
	}
	flags := pflag.NewFlagSet("relay", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist = settings.AllowUnknown
	l := settings.NewLoader(flags, groups)
	if err := flags.Parse(args); err != nil {
		return l, l.Load(args, environ, settings.ParseFault(err))
	}
	return l, l.Load(args, environ)
}

// enough is the least that a relay needs.
var enough = []string{"--table", "orders", "--brokers", "kafka:9092"}

func TestFlagsWinOverVariablesOverFileOverDefaults(t *testing.T) {
	file := "table: of-file\nbatch-size: 1\npoll-interval: 1m\nlog-level: warn\n"
	environ := []string{"RELAY_BATCH_SIZE=2", "RELAY_POLL_INTERVAL=2m", "HOME=/root"}
	l, err := load(t, all, []string{"--poll-interval=3m", "--brokers", "a:1, b:2"}, environ, file)
	if err != nil {
		t.Fatal(err)
	}
	c := l.Settings.Relay
	if c.Table != "of-file" || c.BatchSize != 2 || c.PollInterval != 3*time.Minute || c.LeaseDuration != 30*time.Second {
		t.Errorf("table %q, batch size %d, poll interval %v, lease duration %v", c.Table, c.BatchSize, c.PollInterval, c.LeaseDuration)
	}
	if want := []string{"a:1", "b:2"}; !reflect.DeepEqual(l.Settings.Kafka.Brokers, want) {
		t.Errorf("brokers %q, want %q", l.Settings.Kafka.Brokers, want)
	}
	for name, want := range map[string]string{
		"table": "relay.yaml:1", "batch-size": "RELAY_BATCH_SIZE", "poll-interval": "--poll-interval", "lease-duration": "",
	} {
		if got := l.Origin(name); got != want {
			t.Errorf("%s comes from %q, want %q", name, got, want)
		}
	}
}

func TestEachKafkaPropertyIsLayeredByItself(t *testing.T) {
	file := "kafka:\n  security.protocol: PLAINTEXT\n  linger.ms: 5\n  client.id: of-file\n"
	environ := []string{"RELAY_KAFKA_CLIENT_ID=of-environment", "RELAY_KAFKA_LINGER_MS=7"}
	args := append([]string{"--kafka", "linger.ms=9", "--kafka=sasl.username=a=b"}, enough...)
	l, err := load(t, all, args, environ, file)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"security.protocol": "PLAINTEXT", "client.id": "of-environment", "linger.ms": "9", "sasl.username": "a=b",
	}
	if got := l.Settings.Kafka.Properties; !reflect.DeepEqual(got, want) {
		t.Errorf("properties %v, want %v", got, want)
	}
}

func TestValuesOfAFileAreTakenAsWritten(t *testing.T) {
	l, err := load(t, all, nil, nil,
		"table: 0123\nrelay-id: 1e3\nmax-batch-bytes: 64KiB\nposition-headers: on\nbrokers: [a:1, b:2]\n")
	if err != nil {
		t.Fatal(err)
	}
	c := l.Settings.Relay
	if c.Table != "0123" || c.RelayID != "1e3" || c.MaxBatchBytes != 64<<10 || !c.PositionHeaders || len(l.Settings.Kafka.Brokers) != 2 {
		t.Errorf("%q %q %d %v %q", c.Table, c.RelayID, c.MaxBatchBytes, c.PositionHeaders, l.Settings.Kafka.Brokers)
	}
}

// faultCases are single slips and what the operator must read. Each case has
// all that is required beside.
var faultCases = []struct {
	name    string
	args    []string
	environ []string
	file    string
	want    string
}{
	{"a duration needs a unit", []string{"--lease-duration=30"}, nil, "",
		`lease-duration "30": needs a unit, such as 30s (from --lease-duration)`},
	{"a negative duration", nil, []string{"RELAY_POLL_INTERVAL=-1s"}, "",
		`poll-interval "-1s": must be positive (from RELAY_POLL_INTERVAL)`},
	{"zero does not mean the default", nil, nil, "batch-size: 0\n",
		`batch-size "0": must be a whole number, 1 or more (from relay.yaml:1)`},
	{"a size", []string{"--max-batch-bytes", "8 miles"}, nil, "",
		`max-batch-bytes "8 miles": must be a size of at least 1 byte and below 2GiB, such as 8MiB or 500KB (from --max-batch-bytes)`},
	{"an empty text does not mean the default", []string{"--key-prefix="}, nil, "",
		`key-prefix "": must not be empty (from --key-prefix)`},
	{"too many buckets", []string{"--bucket-count", "10001"}, nil, "",
		`bucket-count: 10001 is not between 1 and 10000 (from --bucket-count)`},
	{"a mode that there is not", []string{"--mode", "strict"}, nil, "",
		`mode "strict": must be one of: ordered, fenced (from --mode)`},
	{"a policy that does not exist", nil, []string{"RELAY_POISON=drop"}, "",
		`poison "drop": must be one of: park, block, dead-letter (from RELAY_POISON)`},
	{"letters without a topic", nil, []string{"RELAY_POISON=dead-letter"}, "",
		`dead-letter-topic "": is required with poison "dead-letter"`},
	{"a choice", []string{"--log-format", "xml"}, nil, "",
		`log-format "xml": must be one of: auto, console, json (from --log-format)`},
	{"an identifier", []string{"--relay-id", "käse"}, nil, "",
		`relay-id "käse": must be printable ASCII, 1 to 128 characters (from --relay-id)`},
	{"leases renewed too late", nil, nil, "lease-renew-interval: 12s\n",
		`lease-renew-interval 12s: must be at most a third of lease-duration 30s (from relay.yaml:1)`},
	{"an address with credentials", []string{"--dynamodb-endpoint", "http://me:hunter2@db:8000"}, nil, "",
		`dynamodb-endpoint (redacted): must not contain credentials, which come from the SDK's chain (from --dynamodb-endpoint)`},
	{"a broker", []string{"--brokers=kafka:nine"}, nil, "",
		`brokers: "kafka:nine": its port is not a number from 1 to 65535 (from --brokers)`},
	{"a property that carries the promise", nil, []string{"RELAY_KAFKA_ACKS=1"}, "",
		`kafka acks=1: refused: a row is deleted on acknowledgement, so all in-sync replicas must have the record (from RELAY_KAFKA_ACKS)`},
	{"a property that does not exist", []string{"--kafka", "lingering.ms=5"}, nil, "",
		`kafka "lingering.ms": No such configuration property: "lingering.ms" (from --kafka lingering.ms)`},
	{"a property without a value may be a secret", []string{"--kafka", "hunter2"}, nil, "",
		`--kafka (redacted): must be written as property=value`},
	{"a misspelled flag", []string{"--bacth-size", "5"}, nil, "", `--bacth-size: no such flag; the nearest is --batch-size`},
	{"a misspelled flag with its value", []string{"--pol-interval=5s"}, nil, "",
		`--pol-interval "5s": no such flag; the nearest is --poll-interval`},
	{"a flag without its value", []string{"--region"}, nil, "", `--region: needs a value`},
	{"a misspelled variable", nil, []string{"RELAY_TABEL=orders"}, "",
		`RELAY_TABEL "orders": no such variable; the nearest is RELAY_TABLE`},
	{"a misspelled secret is not shown", nil, []string{"RELAY_KAKFA_SASL_PASSWORD=hunter2"}, "",
		`RELAY_KAKFA_SASL_PASSWORD (redacted): no such variable; the nearest is RELAY_KAFKA_SASL_PASSWORD`},
	{"properties go one to a variable", nil, []string{"RELAY_KAFKA=sasl.password=hunter2"}, "",
		`RELAY_KAFKA (redacted): is set one property at a time, such as RELAY_KAFKA_SECURITY_PROTOCOL`},
	{"a misspelled key", nil, nil, "leaseduration: 5s\n",
		`leaseduration "5s": no such setting; the nearest is lease-duration (from relay.yaml:1)`},
	{"an address without a port", []string{"--admin-addr", "localhost"}, nil, "",
		`admin-addr "localhost": must be host:port, such as 127.0.0.1:9464, or off (from --admin-addr)`},
	{"a port by name", nil, nil, "admin-addr: :http\n",
		`admin-addr ":http": its port must be a number from 0 to 65535 (from relay.yaml:1)`},
	{"what looks like a token is not shown", nil, []string{"RELAY_ADMIN_TOKEN_FILES=/run/token"}, "",
		`RELAY_ADMIN_TOKEN_FILES (redacted): no such variable; the nearest is RELAY_ADMIN_TOKEN_FILE`},
	{"a key that is set twice", nil, nil, "region: here\n\nregion: there\n",
		`region: is set in line 1 already (from relay.yaml:3)`},
	{"a map where a value is wanted", nil, nil, "region: {name: here}\n", `region: must be one value (from relay.yaml:1)`},
	{"a property in pieces", nil, nil, "kafka:\n  sasl: {password: hunter2}\n",
		`kafka.sasl: must be one value; write the property's name with its dots (from relay.yaml:2)`},
	{"properties that are no map", nil, nil, "kafka: hunter2\n",
		`kafka: must be a map from librdkafka properties to values (from relay.yaml:1)`},
}

func TestAFaultNamesSettingValueAndOrigin(t *testing.T) {
	for _, c := range faultCases {
		t.Run(c.name, func(t *testing.T) {
			environ := append([]string{"RELAY_TABLE=orders", "RELAY_BROKERS=kafka:9092"}, c.environ...)
			_, err := load(t, all, c.args, environ, c.file)
			var faults settings.Faults
			if !errors.As(err, &faults) {
				t.Fatalf("error %v is no Faults", err)
			}
			if len(faults) != 1 || faults[0].Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestAllFaultsAreReportedTogether(t *testing.T) {
	_, err := load(t, all, []string{"--tabel", "x", "--mode=strict"}, []string{"RELAY_BATCH_SIZE=many", "RELAY_KAFKA_RETRIES=1"},
		"poll-interval: 5\nbacklog: 1\n")
	for _, want := range []string{"8 settings are wrong", "--tabel", "mode", "batch-size", "kafka retries", "poll-interval", "backlog", "table: a table is required", "brokers: at least one"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not mention %s", err, want)
		}
	}
}

func TestKubernetesVariablesOfAServiceCalledRelayAreIgnored(t *testing.T) {
	environ := []string{
		"RELAY_SERVICE_HOST=10.0.0.1", "RELAY_SERVICE_PORT=9464", "RELAY_SERVICE_PORT_ADMIN=9464",
		"RELAY_PORT=tcp://10.0.0.1:9464", "RELAY_PORT_9464_TCP=tcp://10.0.0.1:9464",
		"RELAY_PORT_9464_TCP_PROTO=tcp", "RELAY_PORT_9464_TCP_PORT=9464", "RELAY_PORT_9464_TCP_ADDR=10.0.0.1",
		"RELAY_KAFKA_SERVICE_HOST=10.0.0.2", "RELAY_TABLE_SERVICE_PORT=1",
	}
	l, err := load(t, all, enough, environ, "")
	if err != nil || len(l.Settings.Kafka.Properties) != 0 {
		t.Errorf("error %v, properties %v", err, l.Settings.Kafka.Properties)
	}
}

func TestEmptyVariablesCountAsNotSet(t *testing.T) {
	if _, err := load(t, all, enough, []string{"RELAY_BATCH_SIZE=", "RELAY_REGION="}, ""); err != nil {
		t.Error(err)
	}
}

func TestACommandNeedsOnlyItsOwnSettings(t *testing.T) {
	if _, err := load(t, settings.Table, []string{"--table", "orders"}, []string{"RELAY_POLL_INTERVAL=5s"}, ""); err != nil {
		t.Errorf("settings of other commands stand in the way: %v", err)
	}
	if _, err := load(t, settings.Table, []string{"--table", "orders", "--poll-interval", "5s"}, nil, ""); err == nil {
		t.Error("a flag that the command does not have was accepted")
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	args := append([]string{"--config", filepath.Join(t.TempDir(), "none.yaml")}, enough...)
	if _, err := load(t, all, args, nil, ""); err == nil || !strings.Contains(err.Error(), "cannot be read: no such file") {
		t.Errorf("missing file: %v", err)
	}
	for _, content := range []string{"table: [", "- a\n- b\n", "kafka:\n  sasl.password: *hunter2\n"} {
		_, err := load(t, all, enough, nil, content)
		if err == nil || !strings.Contains(err.Error(), "config ") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("content %q: %v", content, err)
		}
	}
	if _, err := load(t, all, enough, nil, "# nothing\n"); err != nil {
		t.Errorf("an empty file: %v", err)
	}
}

func TestEffectiveSettingsShowNoSecret(t *testing.T) {
	secrets := map[string]string{
		"sasl.password": "hunter2", "ssl.key.password": "hunter2", "ssl.keystore.password": "hunter2",
		"sasl.oauthbearer.client.secret": "hunter2",
	}
	args := append([]string{"--kafka", "sasl.username=me", "--kafka", "sasl.mechanisms=PLAIN", "--kafka", "security.protocol=SASL_PLAINTEXT"}, enough...)
	for name, value := range secrets {
		args = append(args, "--kafka", name+"="+value)
	}
	l, err := load(t, all, args, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{}
	for _, s := range l.Settings.Effective(all) {
		shown[s.Name] = s.Value
	}
	for name := range secrets {
		if got := shown["kafka."+name]; got != "(redacted)" {
			t.Errorf("%s is shown as %q", name, got)
		}
	}
	for name, want := range map[string]string{
		"kafka.sasl.username": "me", "kafka.security.protocol": "SASL_PLAINTEXT", "table": "orders", "brokers": "kafka:9092",
		"lease-duration": "30s", "max-batch-bytes": "8MiB", "position-headers": "off", "bucket-count": "8",
	} {
		if shown[name] != want {
			t.Errorf("%s is shown as %q, want %q", name, shown[name], want)
		}
	}
}

// A secret must not be repeated by the message that refuses it either.
func TestFaultsShowNoSecret(t *testing.T) {
	for _, property := range []string{
		"sasl.password", "sasl.pasword", "SASL.PASSWORD", "ssl.key.pem", "sasl.oauthbearer.config", "ssl.key.passwrod", "sasl.jaas.config",
	} {
		_, err := load(t, all, append([]string{"--kafka", property + "=hunter2", "--kafka", "no.such.property=1"}, enough...), nil, "")
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", property, err)
		}
	}
}

// A command that can do without brokers takes them as any other does, and misses
// nothing without them; what is wrong is wrong all the same.
func TestBrokersThatNeedNotBeSet(t *testing.T) {
	groups := settings.Table | settings.BrokersIfAny | settings.Relay
	l, err := load(t, groups, []string{"--table", "orders"}, nil, "")
	if err != nil || len(l.Settings.Kafka.Brokers) != 0 {
		t.Errorf("without brokers: %v, %v", l.Settings.Kafka.Brokers, err)
	}
	l, err = load(t, groups, []string{"--table", "orders", "--brokers", "a:1,b:2", "--kafka", "linger.ms=1"}, nil, "")
	if err != nil || len(l.Settings.Kafka.Brokers) != 2 || l.Settings.Kafka.Properties["linger.ms"] != "1" {
		t.Errorf("with brokers: %+v, %v", l.Settings.Kafka, err)
	}
	for _, wrong := range [][]string{{"--brokers", "kafka:nine"}, {"--kafka", "acks=1"}} {
		if _, err := load(t, groups, append([]string{"--table", "orders"}, wrong...), nil, ""); err == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
}
