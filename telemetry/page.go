package telemetry

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/bucketbrigade/relay/fsm"
)

var (
	//go:embed page.css
	pageStyle string
	//go:embed page.js
	pageScript string
)

// pageRows is how many buckets, and how many relays, the page lists at most: those in
// trouble first.
const pageRows = 200

// page writes a Status as one HTML document without outside assets. It is put together
// from parts (page_nodes.go): a template of Go's library looks methods up by name, for
// which the linker keeps each method of every type, and these are a sixth of the binary.
type page struct{ policy string }

func newPage() *page {
	return &page{
		policy: fmt.Sprintf("default-src 'none'; style-src '%s'; script-src '%s'; connect-src 'self'; img-src data:; "+
			"base-uri 'none'; form-action 'none'; frame-ancestors 'none'", digest(pageStyle), digest(pageScript)),
	}
}

// digest is how a content security policy names an inline text.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

func (p *page) serve(w http.ResponseWriter, s Status, now time.Time) {
	v := newView(s, now)
	w.Header().Set("Content-Security-Policy", p.policy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = v.document().Render(w) // who asked has gone: nobody is left to tell
}

// Tones are how things look: as they should, in need of a look, wrong.
const (
	good = "good"
	warn = "warn"
	bad  = "bad"
)

// rank puts what is wrong first.
func rank(tone string) int { return slices.Index([]string{bad, warn, good}, tone) }

// view is a Status in the words of the page.
type view struct {
	Status   Status
	Tone     string
	Since    string
	Now      string
	Tiles    []tile
	Chart    chart
	Troubles []trouble
	Fleet    *fleetView
	States   []stateCount
	Topics   []string // that are paused, each with its pause
	Buckets  []bucketRow
	Hidden   int
	Settings []setting
}

type setting struct{ Name, Value string }

// tile is one figure.
type tile struct{ Label, Value, Note, Tone string }

type stateCount struct {
	State, Tone string
	Count       int
}

type bucketRow struct {
	Bucket, LastSequence                       int64
	State, BatchState, For, Pending, LastError string
	Paused, Tone                               string
}

func newView(s Status, now time.Time) view {
	v := view{
		Status: s, Tone: toneOfRelay(s.State), Now: now.UTC().Format(time.DateTime),
		Tiles: tiles(s), Troubles: readTroubles(s.Troubles), Fleet: newFleetView(s, now),
	}
	if s.Since != nil {
		v.Since = s.Since.UTC().Format(time.DateTime)
	}
	if s.Rates != nil {
		v.Chart = newChart(s.Rates.LastMinute)
	} else {
		v.Chart = newChart(nil)
	}
	v.States = countStates(s.Buckets)
	v.Topics = pausedTopics(s.Buckets)
	v.Buckets, v.Hidden = bucketRows(s.Buckets, now)
	for _, name := range slices.Sorted(maps.Keys(s.Settings)) {
		v.Settings = append(v.Settings, setting{name, s.Settings[name]})
	}
	return v
}

func toneOfRelay(state string) string {
	switch state {
	case ready:
		return good
	case "withdrawn", "stopped":
		return bad
	}
	return warn
}

func toneOfBucket(b BucketStatus) string {
	switch fsm.State(b.State) {
	case fsm.Blocked, fsm.Withheld:
		return bad
	case fsm.Owned:
		if b.LastError == "" && fsm.State(b.BatchState) != fsm.BackingOff {
			return good
		}
	}
	return warn
}

// tiles are the figures that come first. What is not known here is said to be so.
func tiles(s Status) []tile {
	all := []tile{{Label: "buckets owned", Value: fmt.Sprint(len(s.Buckets))}}
	if r := s.Rates; r != nil {
		failures := tile{Label: "failures a minute", Value: figure(r.FailuresPerMinute)}
		if r.FailuresPerMinute > 0 {
			failures.Tone = warn
		}
		all = append(all, tile{Label: "messages a second", Value: figure(r.MessagesPerSecond)}, failures)
	}
	if b := s.Backlog; b != nil {
		all = append(all, backlogTiles(b)...)
	} else {
		all = append(all, tile{Label: "waiting", Value: "–", Note: "the owner of bucket 0 counts"})
	}
	skew := tile{Label: "clock ahead", Value: figure(s.ClockSkewSeconds) + " s"}
	if s.ClockSkewSeconds < -1 || s.ClockSkewSeconds > 1 {
		skew.Tone = warn
	}
	all = append(all, skew)
	if r := s.Rates; r != nil {
		all = append(all, tile{Label: "requests a second", Value: figure(r.RequestsPerSecond), Note: figure(r.UnitsPerSecond) + " units"})
	}
	return all
}

func backlogTiles(b *Backlog) []tile {
	waiting := tile{Label: "waiting, all buckets", Value: fmt.Sprint(b.Pending)}
	if b.PendingIsLimit {
		waiting.Value, waiting.Note = "≥ "+waiting.Value, "more than was counted"
	}
	parked := tile{Label: "keys set aside", Value: fmt.Sprint(b.ParkedKeys)}
	if b.ParkedKeys > 0 {
		parked.Tone, parked.Note = warn, fmt.Sprintf("%d rows", b.ParkedRows)
	}
	oldest := tile{Label: "oldest waits for", Value: duration(time.Duration(b.OldestAgeSeconds * float64(time.Second)))}
	return []tile{waiting, oldest, parked}
}

// countStates says how many buckets are in each state, in the order of a tenure.
func countStates(buckets []BucketStatus) []stateCount {
	count, tones := map[string]int{}, map[string]string{}
	for _, b := range buckets {
		count[b.State]++
		tones[b.State] = toneOfBucket(BucketStatus{State: b.State})
	}
	var all []stateCount
	for _, state := range append([]fsm.State{fsm.Claiming}, heldStates()...) {
		if n := count[string(state)]; n > 0 {
			all = append(all, stateCount{string(state), tones[string(state)], n})
		}
	}
	return all
}

// bucketRows lists the buckets, those in trouble first, and says how many are
// left out.
func bucketRows(buckets []BucketStatus, now time.Time) (rows []bucketRow, hidden int) {
	for _, b := range buckets {
		row := bucketRow{
			Bucket: int64(b.Bucket), LastSequence: b.LastSequence, State: b.State, BatchState: b.BatchState,
			LastError: b.LastError, Tone: toneOfBucket(b), Pending: "–",
		}
		if b.Paused != nil {
			row.Paused = b.Paused.text()
		}
		if b.Since != nil {
			row.For = duration(now.Sub(*b.Since))
		}
		if b.Pending != nil {
			row.Pending = fmt.Sprint(*b.Pending)
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b bucketRow) int { return cmp.Compare(rank(a.Tone), rank(b.Tone)) })
	if hidden = len(rows) - pageRows; hidden <= 0 {
		return rows, 0
	}
	return rows[:pageRows], hidden
}

// pausedTopics has a line for each topic that is paused, however many buckets say so: a
// second one only where they tell of another pause.
func pausedTopics(buckets []BucketStatus) (lines []string) {
	for _, b := range buckets {
		for _, t := range b.PausedTopics {
			lines = append(lines, t.Topic+": "+t.text())
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// text is who has paused, until when and why.
func (p *Pause) text() string {
	until := "until resumed"
	if p.Until != nil {
		until = "until " + p.Until.UTC().Format(time.DateTime) + " UTC"
	}
	return fmt.Sprintf("paused %s, by %s: %s", until, cmp.Or(p.By, "somebody"), cmp.Or(p.Reason, "no reason given"))
}

// trouble is a line of the log, as people read it.
type trouble struct{ Time, Event, Message, Times, Facts, Tone string }

// readTroubles puts lines of the log into words.
func readTroubles(lines []json.RawMessage) (all []trouble) {
	for _, line := range lines {
		var fields map[string]any
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.UseNumber()
		if decoder.Decode(&fields) != nil {
			continue // no line of ours
		}
		word := func(name string) string { text, _ := fields[name].(string); return text }
		moment := func(name string) string {
			at, err := time.Parse(timeLayout, word(name))
			if err != nil {
				return ""
			}
			return at.Format(time.DateTime)
		}
		t := trouble{Event: word("event"), Message: word("message"), Tone: toneOfLevel(word("level")), Time: moment("time")}
		if first := moment("firstTime"); first != "" {
			t.Times = fmt.Sprintf("%v times since %s", fields["count"], first)
		}
		var facts []string
		var several struct{ Buckets []int }
		if json.Unmarshal(line, &several) == nil && len(several.Buckets) > 0 {
			facts = append(facts, "buckets: "+ranges(several.Buckets))
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if !slices.Contains([]string{"level", "time", "relay", "event", "message", "count", "firstTime", "buckets"}, name) {
				facts = append(facts, fmt.Sprintf("%s: %v", name, fields[name]))
			}
		}
		t.Facts = strings.Join(facts, " · ")
		all = append(all, t)
	}
	return all
}

func toneOfLevel(level string) string {
	switch level {
	case "error":
		return bad
	case "warn":
		return warn
	}
	return good
}

// chart is a row of bars, one for each second.
type chart struct {
	Width, Height, Most int
	Bars                []bar
}

type bar struct {
	X, Y, Height int
	Title        string
}

func newChart(values []int) chart {
	c := chart{Width: 5 * boardSeconds, Height: 40}
	if len(values) > 0 {
		c.Most = slices.Max(values)
	}
	for i, n := range values {
		if n == 0 {
			continue
		}
		height := max(1, n*c.Height/c.Most)
		ago := len(values) - i
		c.Bars = append(c.Bars, bar{X: 5 * i, Y: c.Height - height, Height: height, Title: fmt.Sprintf("%d, %d s ago", n, ago)})
	}
	return c
}

// figure is a number with as many digits as can be read.
func figure(f float64) string {
	switch {
	case f == 0:
		return "0"
	case f < 10 && f > -10:
		return fmt.Sprintf("%.2g", f)
	}
	return fmt.Sprintf("%.0f", f)
}

// duration is one with its two largest units.
func duration(d time.Duration) string {
	d = max(0, d)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d d %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}
