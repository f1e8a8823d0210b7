package telemetry_test

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metricsql"
	"go.yaml.in/yaml/v3"

	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/fsm"
)

// Dashboards and alerts are read at night, when a name that has changed shows as a panel
// without data, or as an alert that never comes. These tests hold deploy/grafana and
// deploy/prometheus against what a scrape really has.

// alertFile is a file of rules, as Prometheus reads it.
type alertFile struct {
	Groups []struct {
		Name  string
		Rules []alertRule
	}
}

type alertRule struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations struct {
		Summary     string
		Description string
		RunbookURL  string `yaml:"runbook_url"`
	}
}

func alertRules(t *testing.T) []alertRule {
	t.Helper()
	content, err := os.ReadFile("../deploy/prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file alertFile
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	var rules []alertRule
	for _, g := range file.Groups {
		rules = append(rules, g.Rules...)
	}
	return rules
}

// dashboard is what is checked of Grafana's model.
type dashboard struct {
	Panels []struct {
		ID      int
		Type    string
		Title   string
		GridPos struct{ X, Y, W, H int }
		Targets []struct {
			Expr         string
			LegendFormat string
		}
	}
	Templating struct {
		List []struct{ Name, Definition string }
	}
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	content, err := os.ReadFile("../deploy/grafana/outbox.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(content, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// exposition is what a scrape has: the values of each label, by series name.
type exposition map[string]map[string][]string

var (
	exposedSeries = regexp.MustCompile(`(?m)^(\w+)(?:\{(.*)\})? \S+$`)
	exposedLabel  = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// fullExposition is of a relay in which all has happened that brings a series.
func fullExposition(t *testing.T) exposition {
	t.Helper()
	s := newScraped(t)
	s.tell(
		event.RecordAcknowledged{Topic: "orders"},
		event.BatchPublished{Rows: 1},
		event.RequestCompleted{Request: "fetch", Outcome: "done"},
		event.BacklogSampled{},
		changed(0, fsm.Owned),
	)
	found := exposition{}
	for _, series := range exposedSeries.FindAllStringSubmatch(s.text(), -1) {
		labels := found[series[1]]
		if labels == nil {
			labels = map[string][]string{"instance": nil, "job": nil} // Prometheus adds them
			found[series[1]] = labels
		}
		for _, l := range exposedLabel.FindAllStringSubmatch(series[2], -1) {
			labels[l[1]] = append(labels[l[1]], l[2])
		}
	}
	return found
}

// judge says what is wrong with an expression: what it cannot be parsed for, the series,
// labels and values that no scrape has, and rates of what is no counter. Grouped are the
// labels that its result has.
func (x exposition) judge(expression string) (faults, grouped []string) {
	fault := func(words ...string) { faults = append(faults, strings.Join(words, " ")) }
	parsed, err := metricsql.Parse(strings.NewReplacer("$__rate_interval", "5m", "$outbox", "outbox").Replace(expression))
	if err != nil {
		return []string{err.Error()}, nil
	}
	known := map[string]bool{}
	metricsql.VisitAll(parsed, func(e metricsql.Expr) {
		switch e := e.(type) {
		case *metricsql.MetricExpr:
			filters := e.LabelFilterss[0]
			name := filters[0].Value
			labels, found := x[name]
			if !found {
				fault("no series", name)
				return
			}
			for label := range labels {
				known[label] = true
			}
			for _, f := range filters[1:] {
				if values, found := labels[f.Label]; !found {
					fault(name, "has no label", f.Label)
				} else if f.Value != "" && !f.IsRegexp && !slices.Contains(values, f.Value) {
					fault(name, "has no", f.Label, f.Value)
				}
			}
		case *metricsql.FuncExpr:
			if e.Name == "rate" || e.Name == "increase" {
				series := string(e.Args[0].AppendString(nil))
				if !regexp.MustCompile(`^\w+_(total|bucket|sum|count)\b`).MatchString(series) {
					fault(e.Name, "of", series, "which is no counter")
				}
			}
		case *metricsql.ModifierExpr:
			for _, label := range e.Args {
				if !known[label] {
					fault("grouped by", label, "which no series here has")
				}
			}
			grouped = append(grouped, e.Args...)
		}
	})
	return faults, grouped
}

var templated = regexp.MustCompile(`\$labels\.(\w+)|\{\{(\w+)\}\}`)

// wantLabels checks that a text for people mentions no label that a result lacks.
func wantLabels(t *testing.T, where, text string, has []string) {
	t.Helper()
	for _, m := range templated.FindAllStringSubmatch(text, -1) {
		if label := m[1] + m[2]; !slices.Contains(has, label) {
			t.Errorf("%s mentions %s, which its result does not have", where, label)
		}
	}
}

// Each alert asks for what there is, and leads to a section that says what to do.
func TestAlertsAskForWhatThereIs(t *testing.T) {
	exposed := fullExposition(t)
	rules := alertRules(t)
	page, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^### (\w+)$`).FindAllStringSubmatch(string(page), -1) {
		sections[m[1]] = true
	}
	const runbook = "https://github.com/bucketbrigade/relay/blob/main/docs/operations.md#"
	for _, r := range rules {
		faults, grouped := exposed.judge(r.Expr)
		for _, fault := range faults {
			t.Errorf("%s: %s", r.Alert, fault)
		}
		wantLabels(t, r.Alert, r.Annotations.Summary+r.Annotations.Description, grouped)
		if !slices.Contains(grouped, "outbox_name") {
			t.Errorf("%s is not told for each outbox: where another one is well, it never comes", r.Alert)
		}
		if r.Annotations.Summary == "" || r.Annotations.Description == "" || r.Labels["severity"] != "critical" && r.Labels["severity"] != "warning" {
			t.Errorf("%s says too little: %+v", r.Alert, r)
		}
		if r.Annotations.RunbookURL != runbook+strings.ToLower(r.Alert) || !sections[r.Alert] {
			t.Errorf("%s leads to %s; docs/operations.md has such a section: %v", r.Alert, r.Annotations.RunbookURL, sections[r.Alert])
		}
		delete(sections, r.Alert)
	}
	for section := range sections {
		if strings.HasPrefix(section, "Outbox") {
			t.Errorf("docs/operations.md has a section for %s, and there is no such alert", section)
		}
	}
}

// Each panel shows what there is, and none covers another.
func TestTheDashboardShowsWhatThereIs(t *testing.T) {
	exposed := fullExposition(t)
	exposed["process_resident_memory_bytes"] = map[string][]string{"instance": nil, "job": nil}
	d := readDashboard(t)
	taken, ids := map[[2]int]string{}, map[int]bool{}
	shown := map[string]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("two panels have the id %d", p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%q is over %q, or leaves the page", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		for _, target := range p.Targets {
			faults, grouped := exposed.judge(target.Expr)
			for _, fault := range faults {
				t.Errorf("%s: %s", p.Title, fault)
			}
			wantLabels(t, p.Title, target.LegendFormat, grouped)
			for _, name := range regexp.MustCompile(`outbox_\w+`).FindAllString(target.Expr, -1) {
				shown[regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")] = true
			}
		}
	}
	for name := range exposed {
		if name = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, ""); strings.HasPrefix(name, "outbox_") && !shown[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// The tests above find what they are for.
func TestWrongExpressionsAreFound(t *testing.T) {
	exposed := fullExposition(t)
	for expression, want := range map[string]string{
		`outbox_messages_total`:                                "no series outbox_messages_total",
		`outbox_lease_losses_total{bucket="3"}`:                "has no label bucket",
		`outbox_requests_total{outcome="throttled"}`:           "has no outcome throttled",
		`sum by (topic) (rate(outbox_lease_losses_total[5m]))`: "grouped by topic",
		`rate(outbox_buckets_owned[5m])`:                       "which is no counter",
		`sum(outbox_buckets_owned`:                             "unexpected token",
	} {
		faults, _ := exposed.judge(expression)
		if len(faults) != 1 || !strings.Contains(faults[0], want) {
			t.Errorf("%s: found %q, want %q", expression, faults, want)
		}
	}
}
