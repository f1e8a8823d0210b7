package main

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/bucketbrigade/relay/cmd/relay/picture"
)

// pictureTaken is the end of one attempt to take a picture.
type pictureTaken struct {
	picture picture.Table
	err     error
	at      time.Time // by this machine's clock
}

// ticked is that time has gone on.
type ticked struct{ now time.Time }

// page is what the screen shows below its head.
type page int

// The pages. Tab goes through the first three.
const (
	bucketsPage page = iota
	relaysPage
	troublesPage
	bucketPage // one bucket
	keysPage   // what the keys do
)

const listPages = 3

// sorting is by what the buckets are sorted.
type sorting int

const (
	sortConcern sorting = iota // what somebody should look at first
	sortBucket
	sortOldest
	sortWaiting
	sortOwner
)

// String is the sorting's name on the screen.
func (s sorting) String() string {
	return []string{"concern", "bucket", "oldest", "waiting", "owner"}[s]
}

// noBucket as the chosen bucket: whichever comes first.
const noBucket = -1

// topModel is the state of the screen: a value that messages change, without a clock or
// a terminal of its own. Only its commands, take and tick, reach out.
type topModel struct {
	table    string
	interval time.Duration // between the end of a picture and the next
	take     tea.Cmd       // results in a pictureTaken
	tick     tea.Cmd       // results in a ticked, some time later

	width, height int
	now           time.Time

	shown   *picture.Table // nil: there was none yet
	shownAt time.Time
	taking  bool // a picture is being taken, since began
	began   time.Time
	err     error // why there is none since; nil when the last attempt went well
	due     time.Time

	page         page
	before       page // where esc leads from a bucket or the keys
	sort         sorting
	reversed     bool
	filter       string
	typing       bool // the filter is being typed
	chosenBucket int
	chosenRelay  string // empty: whichever comes first
	scroll       int    // first line shown of a page without a choice
}

// Init implements tea.Model.
func (m topModel) Init() tea.Cmd {
	return func() tea.Msg { return ticked{m.now} }
}

// Update implements tea.Model.
func (m topModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case ticked:
		return m.passed(msg)
	case pictureTaken:
		m.taking, m.due = false, msg.at.Add(m.interval)
		m.now = msg.at
		if m.err = msg.err; msg.err == nil {
			m.shown, m.shownAt = &msg.picture, msg.at
		}
	case tea.KeyPressMsg:
		if m.typing {
			return m.typed(msg)
		}
		return m.pressed(msg.String())
	}
	return m, nil
}

// passed takes the next picture when it is due. Never two at once: a slow table is not
// asked faster than it answers.
func (m topModel) passed(msg ticked) (tea.Model, tea.Cmd) {
	m.now = msg.now
	if m.taking || msg.now.Before(m.due) {
		return m, m.tick
	}
	m.taking, m.began = true, msg.now
	return m, tea.Batch(m.take, m.tick)
}

// typed edits the filter.
func (m topModel) typed(msg tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	switch msg.String() {
	case "ctrl+c":
		return m, tea.Quit
	case "enter":
		m.typing = false
	case "esc":
		m.typing, m.filter = false, ""
	case "backspace":
		if runes := []rune(m.filter); len(runes) > 0 {
			m.filter = string(runes[:len(runes)-1])
		}
	case "ctrl+u":
		m.filter = ""
	default:
		m.filter += msg.Text
	}
	m.chosenBucket, m.chosenRelay = noBucket, ""
	return m, nil
}

// pressed does what a key is for; keysPage says what that is.
func (m topModel) pressed(key string) (tea.Model, tea.Cmd) {
	switch key {
	case "q", "ctrl+c":
		return m, tea.Quit
	case "ctrl+z":
		return m, tea.Suspend
	case "space", "r":
		m.due = m.now // at the next tick, or when the one under way is over
		if !m.taking {
			return m.passedNow()
		}
	case "?":
		m.open(keysPage)
	case "tab", "right", "l":
		m.turn(1)
	case "shift+tab", "left", "h":
		m.turn(listPages - 1)
	case "t":
		m.open(troublesPage)
	case "/":
		if m.page < listPages {
			m.typing = true
		}
	case "s":
		m.sort = (m.sort + 1) % (sortOwner + 1)
	case "R":
		m.reversed = !m.reversed
	case "esc", "backspace":
		m.back()
	case "enter":
		m.enter()
	default:
		m.move(key)
	}
	return m, nil
}

// passedNow takes a picture at once, beside the ticks that go on.
func (m topModel) passedNow() (tea.Model, tea.Cmd) {
	m.taking, m.began = true, m.now
	return m, m.take
}

// open shows a page, from which esc leads back.
func (m *topModel) open(p page) {
	if m.page < listPages {
		m.before = m.page
	}
	m.page, m.scroll = p, 0
}

// turn goes through the pages that are lists.
func (m *topModel) turn(by int) {
	if m.page >= listPages {
		m.page = m.before
		return
	}
	m.page, m.scroll = (m.page+page(by))%listPages, 0
}

// back leaves a page, or, in a list, the filter.
func (m *topModel) back() {
	if m.page >= listPages {
		m.page, m.scroll = m.before, 0
		return
	}
	m.filter = ""
}

// enter looks closer: at a bucket, or at the buckets of a relay.
func (m *topModel) enter() {
	switch m.page {
	case bucketsPage:
		if buckets := m.buckets(); len(buckets) > 0 {
			m.chosenBucket = buckets[m.bucketAt(buckets)]
			m.open(bucketPage)
		}
	case relaysPage:
		if relays := m.relays(); len(relays) > 0 {
			m.filter, m.page, m.chosenBucket = relays[m.relayAt(relays)].ID, bucketsPage, noBucket
		}
	}
}

// move goes up or down, by a line, a page, or to an end.
func (m *topModel) move(key string) {
	by, known := map[string]int{
		"up": -1, "k": -1, "down": 1, "j": 1,
		"pgup": -m.bodyHeight(), "pgdown": m.bodyHeight(),
		"home": -end, "g": -end, "end": end, "G": end,
	}[key]
	if !known {
		return
	}
	switch m.page {
	case bucketsPage:
		if buckets := m.buckets(); len(buckets) > 0 {
			m.chosenBucket = buckets[within(m.bucketAt(buckets)+by, len(buckets))]
		}
	case relaysPage:
		if relays := m.relays(); len(relays) > 0 {
			m.chosenRelay = relays[within(m.relayAt(relays)+by, len(relays))].ID
		}
	default:
		m.scroll = within(m.scroll+by, max(1, len(m.pageLines())-m.bodyHeight()+1))
	}
}

// end is further than any list goes.
const end = 1 << 30

// within is the nearest index that a list of some length has.
func within(i, length int) int { return max(0, min(i, length-1)) }

// buckets are those that pass the filter, in the order of the screen.
func (m topModel) buckets() []int {
	if m.shown == nil {
		return nil
	}
	p := *m.shown
	// A bucket's number means that bucket, and not all that have the digits somewhere; a
	// relay may be called by a number, too.
	number, err := strconv.Atoi(m.filter)
	isNumber := err == nil && number >= 0 && number < len(p.Buckets)
	passed := bucketsWhere(p, func(b picture.Bucket) bool {
		if isNumber {
			return b.Lease.Bucket == number || b.Lease.Owner == m.filter
		}
		return m.passes(string(b.Lease.State), b.Lease.Owner, b.Head.Topic, noteOf(p, b).text)
	})
	slices.SortStableFunc(passed, func(i, j int) int {
		order := m.compare(p, i, j)
		if m.reversed {
			return -order
		}
		return order
	})
	return passed
}

func (m topModel) compare(p picture.Table, i, j int) int {
	a, b := p.Buckets[i], p.Buckets[j]
	switch m.sort {
	case sortConcern:
		return compareConcern(p, i, j)
	case sortOldest:
		return cmp.Compare(b.Oldest, a.Oldest)
	case sortWaiting:
		return cmp.Compare(b.Pending, a.Pending)
	case sortOwner:
		return cmp.Compare(a.Lease.Owner, b.Lease.Owner)
	default:
		return cmp.Compare(i, j)
	}
}

// relays are those that pass the filter, those of concern first.
func (m topModel) relays() []picture.Relay {
	if m.shown == nil {
		return nil
	}
	return slices.DeleteFunc(byConcern(m.shown.Relays), func(r picture.Relay) bool {
		return !m.passes(r.ID, string(r.State), r.Mode)
	})
}

// passes tells whether one of some texts has the filter in it; case does not count.
func (m topModel) passes(texts ...string) bool {
	return slices.ContainsFunc(texts, func(text string) bool {
		return strings.Contains(strings.ToLower(text), strings.ToLower(m.filter))
	})
}

// bucketAt is where the chosen bucket is in a list, which is not empty: the first when
// it is not there.
func (m topModel) bucketAt(buckets []int) int { return max(0, slices.Index(buckets, m.chosenBucket)) }

// relayAt is where the chosen relay is in a list, which is not empty.
func (m topModel) relayAt(relays []picture.Relay) int {
	return max(0, slices.IndexFunc(relays, func(r picture.Relay) bool { return r.ID == m.chosenRelay }))
}
