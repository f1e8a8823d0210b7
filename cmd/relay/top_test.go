package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/bucketbrigade/relay/cmd/relay/picture"
	"github.com/bucketbrigade/relay/store"
)

// screen is a topModel at work, without a terminal: what its commands would have done
// is counted.
type screen struct {
	*testing.T
	model topModel
	takes int // pictures that were asked for
	now   time.Time
}

func newScreen(t *testing.T, width, height int) *screen {
	s := &screen{T: t, now: noon}
	s.model = topModel{
		table: "orders", interval: 5 * time.Second, now: noon, chosenBucket: noBucket,
		take: func() tea.Msg { return pictureTaken{} },
		tick: func() tea.Msg { return nil },
	}
	s.send(tea.WindowSizeMsg{Width: width, Height: height})
	s.send(s.model.Init()())
	return s
}

func (s *screen) send(msg tea.Msg) tea.Cmd {
	wasTaking := s.model.taking
	model, cmd := s.model.Update(msg)
	s.model = model.(topModel)
	if s.model.taking && !wasTaking {
		s.takes++
	}
	return cmd
}

// press sends keys, by their names.
func (s *screen) press(keys ...string) *screen {
	s.Helper()
	codes := map[string]rune{"up": tea.KeyUp, "down": tea.KeyDown, "pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp, "home": tea.KeyHome,
		"end": tea.KeyEnd, "enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "backspace": tea.KeyBackspace}
	for _, key := range keys {
		press := tea.KeyPressMsg{Text: key}
		if code, named := codes[key]; named {
			press = tea.KeyPressMsg{Code: code}
		} else if letter, isControl := strings.CutPrefix(key, "ctrl+"); isControl {
			press = tea.KeyPressMsg{Code: rune(letter[0]), Mod: tea.ModCtrl}
		} else {
			press.Code = []rune(key)[0]
		}
		if press.String() != key {
			s.Fatalf("the key %q is called %q", key, press.String())
		}
		s.send(press)
	}
	return s
}

// picture is one of the console's table, with this many buckets.
func (c *console) picture(t *testing.T, buckets int) picture.Table {
	t.Helper()
	p, err := picture.Take(t.Context(), store.NewClient(schema, c.table, c.table), picture.Options{BucketCount: buckets,
		LeaseDuration: 30 * time.Second, CountLimit: 10, Concurrency: 4, Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// shows is the end of taking a picture.
func (s *screen) shows(p picture.Table) *screen {
	s.send(pictureTaken{picture: p, at: s.now})
	return s
}

// later lets time go on, second by second.
func (s *screen) later(d time.Duration) *screen {
	for end := s.now.Add(d); s.now.Before(end); {
		s.now = s.now.Add(time.Second)
		s.send(ticked{s.now})
	}
	return s
}

// text is what the screen shows, without colours.
func (s *screen) text() string { return ansi.Strip(s.model.View().Content) }

func (s *screen) wantText(parts ...string) *screen {
	s.Helper()
	for _, part := range parts {
		if !strings.Contains(s.text(), part) {
			s.Errorf("no %q on the screen:\n%s", part, s.text())
		}
	}
	return s
}

func TestTopScreens(t *testing.T) {
	p := troubled(t).picture(t, 8)
	for name, show := range map[string]func(s *screen){
		"top_buckets.txt": func(*screen) {},
		"top_chosen.txt": func(s *screen) {
			s.press("s", "down", "down", "/").press(strings.Split("relay-a", "")...).press("enter")
		},
		"top_relays.txt":   func(s *screen) { s.press("tab", "down") },
		"top_troubles.txt": func(s *screen) { s.press("t", "down") },
		"top_bucket.txt":   func(s *screen) { s.press("/", "0", "enter", "enter") },
		"top_keys.txt":     func(s *screen) { s.press("?") },
		"top_stale.txt": func(s *screen) {
			s.later(8 * time.Second)
			s.send(pictureTaken{err: errors.New("read relays and leases: throttled\n  with advice"), at: s.now})
			s.later(7 * time.Second)
		},
	} {
		s := newScreen(t, 80, 24).shows(p)
		show(s)
		golden(t, name, s.text()+"\n")
	}
}

// Whatever the window is, and whatever is shown, the screen fits it.
func TestTopFitsEveryWindow(t *testing.T) {
	p := troubled(t).picture(t, 8)
	for _, size := range [][2]int{{0, 0}, {1, 1}, {3, 2}, {10, 40}, {20, 5}, {80, 24}, {81, 3}, {200, 60}} {
		for _, keys := range [][]string{nil, {"end"}, {"tab"}, {"t", "end"}, {"enter", "pgdown"}, {"?"}, {"/", "x"}} {
			s := newScreen(t, 100, 30).shows(p)
			s.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
			s.press(keys...)
			lines := strings.Split(s.text(), "\n")
			if len(lines) > max(1, size[1]) {
				t.Errorf("%v, %v: %d lines", size, keys, len(lines))
			}
			for _, line := range lines {
				if ansi.StringWidth(line) > size[0] {
					t.Errorf("%v, %v: too wide: %q", size, keys, line)
				}
			}
		}
	}
}

// One picture at a time, each an interval after the end of the one before.
func TestTopTakesOnePictureAfterTheOther(t *testing.T) {
	s := newScreen(t, 80, 24)
	if s.takes != 1 {
		t.Fatalf("%d pictures were asked for at the start", s.takes)
	}
	s.wantText("reading the table ...")
	s.later(20 * time.Second)
	if s.takes != 1 {
		t.Errorf("a slow table was asked %d times", s.takes)
	}
	s.wantText("reading for 20s")
	s.send(pictureTaken{at: s.now})
	if s.later(4 * time.Second); s.takes != 1 {
		t.Error("the next picture was not waited for")
	}
	if s.later(time.Second); s.takes != 2 {
		t.Error("the next picture was not taken")
	}
	s.press("r")
	if s.takes != 2 {
		t.Error("a second picture was taken beside the first")
	}
	s.send(pictureTaken{at: s.now})
	if s.press("r"); s.takes != 3 {
		t.Error("no picture was taken at once")
	}
}

// A table that is slow or fails takes nothing off the screen, and no key waits for it.
func TestTopKeepsTheLastPicture(t *testing.T) {
	p := troubled(t).picture(t, 8)
	s := newScreen(t, 80, 24).shows(p).later(10 * time.Second)
	s.wantText("22 or more messages wait", "10s old, reading for 5s")
	s.press("tab").wantText("relay-a", "MODE")
	s.send(pictureTaken{err: fmt.Errorf("read relays and leases: %w", store.ErrThrottled), at: s.now})
	s.later(2*time.Second).wantText("no new picture for 12s: read relays and leases: ", "22 or more messages wait", "12s old")
	s.shows(p).wantText("0s old")
	if strings.Contains(s.text(), "no new picture") {
		t.Error("the fault stays after it is over")
	}
}

// In a low window the head gives way to the page, and in a narrow one columns that say less
// to those that say more.
func TestTopInASmallWindow(t *testing.T) {
	p := troubled(t).picture(t, 8)
	for _, size := range [][2]int{{80, 10}, {60, 12}, {40, 10}, {40, 7}, {30, 6}, {20, 5}, {10, 3}} {
		s := newScreen(t, size[0], size[1]).shows(p)
		rows := 0
		for _, line := range strings.Split(s.text(), "\n") {
			if fields := strings.Fields(line); len(fields) > 2 && slices.Contains([]string{"owned", "paused", "lapsed", "free"}, fields[1]) {
				rows++
			}
		}
		if wants := min(leastBody-1, size[1]-3); size[0] >= 20 && rows < wants {
			t.Errorf("%d of %d buckets in a window of %v:\n%s", rows, wants, size, s.text())
		}
		if size[0] >= 40 {
			s.wantText("BUCKET", "STATE", "WAITING", "OLDEST", "relay top")
			if size[1] >= 10 {
				s.wantText("! bucket 4")
			}
		}
		s.press("tab")
		if size[0] >= 40 {
			s.wantText("RELAY", "STATE", "SEEN", "OWNS")
		}
		for _, line := range strings.Split(s.press("?", "esc", "t", "down", "tab", "enter").text(), "\n") {
			if ansi.StringWidth(line) > size[0] {
				t.Errorf("%d columns in a window of %v: %s", ansi.StringWidth(line), size, line)
			}
		}
	}
}

func TestTopWithoutAnyPictureSaysWhy(t *testing.T) {
	s := newScreen(t, 80, 24)
	s.send(pictureTaken{err: errors.New("no such table\n  create it with: relay table create, " + strings.Repeat("or not ", 12)), at: s.now})
	s.wantText("no picture yet: no such table", "create, or not", "\n  or not")
	s.send(pictureTaken{err: errors.New("no such table\n  create it with: relay table create"), at: s.now})
	s.wantText("no such table\n", "  create it with: relay table create")
	for _, key := range []string{"down", "end", "enter", "tab", "enter", "t", "down", "esc", "s", "/", "x", "enter"} {
		s.press(key) // with nothing to choose
	}
}

func TestTopQuits(t *testing.T) {
	for _, key := range []tea.KeyPressMsg{{Code: 'q', Text: "q"}, {Code: 'c', Mod: tea.ModCtrl}} {
		for _, typing := range []bool{false, true} {
			s := newScreen(t, 80, 24)
			s.model.typing = typing
			cmd := s.send(key)
			quits := cmd != nil && cmd() == tea.QuitMsg{}
			if want := !typing || key.Mod != 0; quits != want {
				t.Errorf("%s, typing %t: quits %t", key, typing, quits)
			}
		}
	}
}

// firstRow is the first bucket of the list.
func (s *screen) firstRow() int { return s.model.buckets()[0] }

func TestTopSorts(t *testing.T) {
	s := newScreen(t, 80, 24).shows(troubled(t).picture(t, 8))
	for _, want := range []struct{ first, reversed int }{
		{4, 1}, // concern: the gravest note; the least is one that somebody holds and that has just begun to wait
		{0, 7}, // number
		{0, 5}, // oldest: three hours; nothing
		{0, 5}, // waiting
		{7, 3}, // owner: none; relay-b
	} {
		by := s.model.sort
		if got := s.firstRow(); got != want.first {
			t.Errorf("by %s: bucket %d first, want %d", by, got, want.first)
		}
		s.press("R")
		if got := s.firstRow(); got != want.reversed {
			t.Errorf("by %s, reversed: bucket %d first, want %d", by, got, want.reversed)
		}
		s.press("R", "s")
	}
	if s.model.sort != sortConcern {
		t.Error("the sortings are not a circle")
	}
}

func TestTopFilters(t *testing.T) {
	p := troubled(t).picture(t, 8)
	for filter, want := range map[string]string{
		"relay-b": "[3]", "LAPSED": "[3]", "7": "[7]", "6": "[6]", "3": "[3]", "16": "[4]", "placed": "[2 3 4 6 0 7 1]", "ann@": "[2]", "nothing": "[]", "9": "[]",
	} {
		s := newScreen(t, 80, 24).shows(p)
		s.press("/").press(strings.Split(filter, "")...)
		if got := fmt.Sprint(s.model.buckets()); len(got) != len(want) || (len(want) <= 3 && got != want) {
			t.Errorf("%q: %s, want %s", filter, got, want)
		}
		s.wantText("filter: "+filter+"_").press("enter", "esc")
		if len(s.model.buckets()) != 8 {
			t.Errorf("%q: esc did not clear the filter", filter)
		}
	}
	s := newScreen(t, 80, 24).shows(p).press("/", "9", "9", "backspace").wantText("filter: 9_", "no bucket passes").press("esc").wantText("q quit")
	s.press("tab", "/", "f", "e", "n", "enter").wantText("fenced")
	if strings.Contains(s.text(), "peer.net  ") {
		t.Errorf("a relay that does not pass the filter:\n%s", s.text())
	}
}

// What is chosen stays chosen while the order around it changes.
func TestTopKeepsTheChoice(t *testing.T) {
	p := troubled(t).picture(t, 8)
	s := newScreen(t, 80, 24).shows(p).press("s", "down", "down", "down", "down", "down")
	if s.model.chosenBucket != 5 {
		t.Fatalf("bucket %d is chosen", s.model.chosenBucket)
	}
	s.press("s", "s").shows(p).press("enter").wantText("bucket     5, owned", "(stopped)", "relay peer.net, has stopped")
	s.press("esc").wantText("BUCKET").press("?").wantText("quit").press("esc", "tab").wantText("MODE")
	s.press("end", "up", "up", "enter") // the first of three relays
	if got := fmt.Sprint(s.model.buckets()); s.model.page != bucketsPage || got != "[3]" {
		t.Errorf("the buckets of the silent relay are %s", got)
	}
}

func TestTopScrolls(t *testing.T) {
	c := newConsole(t)
	for bucket := range 300 {
		c.lease(t, bucket, owned("a", 20*time.Second))
	}
	s := newScreen(t, 80, 24).shows(c.picture(t, 300)).press("s", "end")
	s.wantText("   299  owned").press("pgup", "pgup", "home").wantText("     0  owned")
	troubles := newScreen(t, 80, 10).shows(troubled(t).picture(t, 8)).press("t")
	first := troubles.text()
	troubles.press("down", "pgdown", "end").wantText("to go on: relay resume --bucket 2").press("down", "down", "home")
	if got := troubles.text(); got != first {
		t.Errorf("home does not lead to the top:\n%s", got)
	}
}
