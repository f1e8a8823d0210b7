package simulation

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Measures of the picture, in pixels.
const (
	leftMargin  = 96.0
	rightMargin = 40.0
	topMargin   = 84.0 // title and labels of what spans all lanes

	stripHeight = 22.0
	stripGap    = 5.0

	labelHeight = 14.0 // a process's name
	labelLetter = 6.1  // width of a letter of it
	marksHeight = 12.0
	trackGap    = 7.0
	mostRow     = 10.0  // height of a bucket's row
	mostRows    = 130.0 // height of all rows of a track

	axisHeight   = 26.0
	legendHeight = 44.0
)

// picture draws a timeline.
type picture struct {
	timeline *Timeline
	text     strings.Builder
	tracks   []*track
	row      float64 // height of a bucket's row
}

// track is a lane of the picture, for one process after another: each is drawn
// in the first track that has room for its name.
type track struct {
	lives []*life
	free  float64 // from which x on
	top   float64
}

func newPicture(t *Timeline) *picture {
	p := &picture{timeline: t, row: min(mostRow, mostRows/float64(t.options.Buckets))}
	for _, l := range t.lives {
		from := p.x(l.from)
		i := slices.IndexFunc(p.tracks, func(tr *track) bool { return tr.free <= from })
		if i < 0 {
			i = len(p.tracks)
			p.tracks = append(p.tracks, &track{top: p.tracksTop() + float64(i)*p.trackHeight()})
		}
		tr := p.tracks[i]
		tr.lives = append(tr.lives, l)
		tr.free = 8 + max(p.x(max(l.to, l.last)), from+labelLetter*float64(len(l.label())))
	}
	return p
}

func (l *life) label() string { return l.name + " " + l.relay }

func (p *picture) x(at time.Duration) float64 { return leftMargin + at.Seconds()*p.timeline.scale }

func (p *picture) rows() float64 { return p.row * float64(p.timeline.options.Buckets) }

func (p *picture) trackHeight() float64 { return labelHeight + p.rows() + marksHeight + trackGap }

func (p *picture) tracksTop() float64 { return topMargin + 4*(stripHeight+stripGap) + axisHeight }

func (p *picture) tracksEnd() float64 {
	return p.tracksTop() + float64(max(1, len(p.tracks)))*p.trackHeight()
}

func (p *picture) right() float64 { return p.x(p.timeline.end) }

// put writes a piece of SVG. Texts are escaped; numbers have one decimal.
func (p *picture) put(format string, args ...any) {
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			args[i] = escaped(arg)
		case float64:
			args[i] = strings.TrimSuffix(fmt.Sprintf("%.1f", arg), ".0")
		}
	}
	fmt.Fprintf(&p.text, format, args...)
	p.text.WriteByte('\n')
}

func escaped(text string) string {
	var b bytes.Buffer
	if err := xml.EscapeText(&b, []byte(text)); err != nil {
		panic(err) // a buffer takes everything
	}
	return b.String()
}

// style has the colours for a light and a dark surrounding; the picture brings
// its own background.
const style = `<style>
text{font:11px system-ui,sans-serif;fill:#24292f}
.title{font-size:16px;font-weight:600}.small{font-size:10px}.tiny{font-size:8px}.faint{fill:#6a737d}
.page{fill:#fff}.life{fill:#eef1f4}.grid{stroke:#d8dee4}.axis{stroke:#8c959f}
.commits{fill:#0a7d4f}.appends{fill:#1f6feb}.faults{fill:#c2670c}
.away{fill:#f0883e;fill-opacity:.16}.hatch{stroke:#57606a}.mark{fill:#24292f;stroke:#24292f}
.handover{fill:none;stroke-opacity:.75}.healed{stroke:#0a7d4f;stroke-dasharray:5 4}
.broken{stroke:#d1242f;stroke-width:2}.alarm{fill:#d1242f;font-weight:600}.good{fill:#0a7d4f}
@media(prefers-color-scheme:dark){
text{fill:#d5dbe1}.faint{fill:#8b949e}.page{fill:#14181d}.life{fill:#20262d}.grid{stroke:#2b323a}.axis{stroke:#6a737d}
.commits{fill:#3fb97f}.appends{fill:#6ca6ff}.faults{fill:#f0a04b}.hatch{stroke:#a5adb6}
.mark{fill:#e6ebf0;stroke:#e6ebf0}.healed{stroke:#3fb97f}.broken{stroke:#ff6b70}.alarm{fill:#ff6b70}.good{fill:#3fb97f}}
</style>
<defs>
<pattern id="stalled" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path class="hatch" d="M0 0V5"/></pattern>
<pattern id="suspended" width="4" height="4" patternUnits="userSpaceOnUse"><path class="hatch" d="M0 0H4"/></pattern>
</defs>`

// palette has colours that are told apart on both backgrounds; buckets take them
// in turn.
var palette = []string{"#3b82f6", "#e8590c", "#2f9e44", "#c2255c", "#9c5fe0", "#0c9aa8", "#c79100", "#8a6d5a", "#6b7fd7", "#74a81e"}

func colour(bucket int) string { return palette[bucket%len(palette)] }

// draw draws everything, what lies below first.
func (p *picture) draw(r Report) {
	width, height := p.right()+rightMargin, p.tracksEnd()+axisHeight+legendHeight
	width = max(width, leftMargin+leastWidth)
	fmt.Fprintf(&p.text, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" role="img">`+"\n",
		width, height, width, height)
	p.put(`<title>%v</title>`, "relay simulate, seed "+fmt.Sprint(r.Seed))
	p.text.WriteString(style + "\n")
	p.put(`<rect class="page" width="100%%" height="100%%"/>`)
	p.drawTitle(r)
	p.drawAxis(topMargin+4*(stripHeight+stripGap)+14, -8)
	p.drawAxis(p.tracksEnd()+14, 0)
	p.drawStrips()
	for _, tr := range p.tracks {
		p.drawBuckets(tr)
		for _, l := range tr.lives {
			p.drawLife(tr, l)
		}
	}
	p.drawTenures()
	for _, tr := range p.tracks {
		for _, l := range tr.lives {
			p.drawAppends(tr, l)
			p.drawPauses(tr, l)
			p.drawMarks(tr, l)
		}
	}
	p.drawHealing()
	p.drawViolations()
	p.drawLegend(p.tracksEnd() + axisHeight + 6)
	p.text.WriteString("</svg>\n")
}

func (p *picture) drawTitle(r Report) {
	o := p.timeline.options
	verdict, class := "every promise was kept", "title good"
	if !r.OK {
		verdict, class = fmt.Sprintf("broken promises: %d", len(r.Violations)), "title alarm"
	}
	p.put(`<text x="12" y="24" class="title">Seed %d: <tspan class="%v">%v</tspan></text>`, r.Seed, class, verdict)
	p.put(`<text x="12" y="42">%v</text>`, fmt.Sprintf("%d relays, %d buckets, %v messages a second; leases of %v, renewed every %v; clocks within %v; batches of %d; polls every %v",
		o.Relays, o.Buckets, o.Rate, o.LeaseDuration, o.LeaseRenewInterval, o.MaxClockSkew, o.BatchSize, o.PollInterval))
	p.put(`<text x="12" y="58">%v</text>`, fmt.Sprintf("%d messages committed, %d records appended, %d of them duplicates; %d claims; %d refused writes; digest %v",
		r.Messages.Enqueued, r.Messages.Published, r.Messages.Duplicates, r.Handovers, total(r.Refused), r.Digest))
}

// axisSteps are the distances of the axis's labels that people read easily.
var axisSteps = []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second,
	30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour}

// drawAxis writes the labels of virtual time at a height, and a line of the grid
// for each down the lanes when they begin below.
func (p *picture) drawAxis(y, grid float64) {
	const apart = 90.0
	step := axisSteps[len(axisSteps)-1]
	for _, s := range axisSteps {
		if s.Seconds()*p.timeline.scale >= apart {
			step = s
			break
		}
	}
	for at := time.Duration(0); at <= p.timeline.end; at += step {
		if grid != 0 {
			p.put(`<path class="grid" d="M%v %vV%v"/>`, p.x(at), y+4, p.tracksEnd())
		}
		p.put(`<text x="%v" y="%v" class="small" text-anchor="middle">%v</text>`, p.x(at), y, clockText(at))
	}
	p.put(`<text x="12" y="%v" class="small faint">virtual time</text>`, y)
}

// clockText is an instant as h:mm:ss, or m:ss in the first hour.
func clockText(at time.Duration) string {
	h, m, s := int(at.Hours()), int(at.Minutes())%60, int(at.Seconds())%60
	if h > 0 {
		return fmt.Sprintf("%d:%02d:%02d", h, m, s)
	}
	return fmt.Sprintf("%d:%02d", m, s)
}
