package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
)

// What deploy has of our own names and numbers is held against them here; whether its
// files are right for the tools that read them, `make deploy` says.

// deployed reads a file of the folder deploy.
func deployed(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("../../deploy", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// The chart takes each setting of relay run but those that it sets itself, and no other:
// a mistyped one is refused by Helm, before a pod ends with 2.
func TestTheChartKnowsAllSettings(t *testing.T) {
	var schema struct {
		Properties struct {
			Settings struct {
				Properties           map[string]any
				AdditionalProperties *bool
			}
		}
	}
	if err := json.Unmarshal([]byte(deployed(t, "helm/relay/values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	known := schema.Properties.Settings.Properties
	if more := schema.Properties.Settings.AdditionalProperties; more == nil || *more {
		t.Error("the chart takes whatever it is given")
	}
	byChart := []string{"admin-addr", "admin-token-file", "relay-id", "shutdown-timeout"}
	delete(known, "kafka") // librdkafka's own
	defaults := settings.Defaults()
	for _, s := range defaults.Effective(runGroups) {
		_, found := known[s.Name]
		if found == slices.Contains(byChart, s.Name) {
			t.Errorf("values.schema.json: settings has %s: %v", s.Name, found)
		}
		delete(known, s.Name)
	}
	for name := range known {
		t.Errorf("values.schema.json: settings has %s, which relay run has not", name)
	}
}

// What the chart makes of values is a file of settings that relay run takes; the files
// are those of deploy/check's golden test.
func TestRunTakesTheChartsFile(t *testing.T) {
	for name, want := range map[string]map[string]string{
		"least": {"table": "orders-outbox", "brokers": "kafka-1:9092,kafka-2:9092", "admin-addr": ":9464", "shutdown-timeout": "25s"},
		"all": {"pending-count-limit": "1000000", "position-headers": "on", "mode": "fenced", "shutdown-timeout": "1m",
			"admin-token-file": "/etc/relay/admin/token", "kafka.message.max.bytes": "2000000", "kafka.security.protocol": "SASL_SSL", "kafka.socket.keepalive.enable": "true"},
	} {
		flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
		loader := settings.NewLoader(flags, runGroups)
		args := []string{"--config", "../../deploy/check/testdata/" + name + ".yaml"}
		if err := flags.Parse(args); err != nil {
			t.Fatal(err)
		}
		if err := loader.Load(args, []string{"RELAY_KAFKA_SASL_PASSWORD=hunter2"}); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		effective := map[string]string{}
		for _, s := range loader.Settings.Effective(runGroups) {
			effective[s.Name] = s.Value
		}
		for setting, value := range want {
			if effective[setting] != value {
				t.Errorf("%s: %s is %q, want %q", name, setting, effective[setting], value)
			}
		}
	}
}

// systemd tries again unless that is of no use, and waits for a relay that drains; so do
// containers.
func TestWhoStopsARelayLetsItDrain(t *testing.T) {
	unit := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(\w+)=(.*)$`).FindAllStringSubmatch(deployed(t, "systemd/relay.service"), -1) {
		unit[m[1]] = m[2]
	}
	if want := fmt.Sprintf("%d %d", exitUsage, exitBucketCount); unit["RestartPreventExitStatus"] != want || unit["Restart"] != "on-failure" || unit["Type"] != "notify" {
		t.Errorf("the unit has %+v", unit)
	}
	defaults := settings.Defaults()
	least := defaults.Relay.ShutdownTimeout + producersGrace + outlookGrace
	compose, err := os.ReadFile("../../compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	grace := regexp.MustCompile(`(?m)^ *stop_grace_period: (\S+)$`).FindStringSubmatch(string(compose))
	if grace == nil {
		t.Fatal("compose.yaml does not say how long a relay may drain")
	}
	for where, text := range map[string]string{"the unit": unit["TimeoutStopSec"], "compose.yaml": grace[1]} {
		if stop, err := time.ParseDuration(text); err != nil || stop <= least {
			t.Errorf("%s waits for %s; a relay may need %v", where, text, least)
		}
	}
	want := fmt.Sprintf("\nshutdownTimeoutSeconds: %d\n", int(defaults.Relay.ShutdownTimeout.Seconds()))
	if !strings.Contains(deployed(t, "helm/relay/values.yaml"), want) {
		t.Errorf("the chart's default is not%s", want)
	}
}
