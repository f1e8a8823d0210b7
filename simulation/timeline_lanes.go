package simulation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// drawStrips draws what is counted over time: work above, faults below.
func (p *picture) drawStrips() {
	t := p.timeline
	for i, s := range []struct {
		name, class string
		counts      counts
	}{
		{"commits", "commits", t.commits}, {"appends", "appends", t.appends},
		{"table faults", "faults", t.tableFaults}, {"broker faults", "faults", t.brokerFaults},
	} {
		bottom := topMargin + float64(i+1)*(stripHeight+stripGap) - stripGap
		p.put(`<text x="12" y="%v" class="small">%v</text>`, bottom-9, s.name)
		p.put(`<path class="axis" d="M%v %vH%v"/>`, leftMargin, bottom, p.right())
		if len(s.counts) == 0 {
			p.put(`<text x="12" y="%v" class="small faint">none</text>`, bottom+1)
			continue
		}
		most := slices.Max(s.counts)
		perSecond := float64(most) / columnWidth * t.scale
		digits := 1
		if perSecond >= 10 {
			digits = 0
		}
		p.put(`<text x="12" y="%v" class="small faint">to %v/s</text>`, bottom+1, strconv.FormatFloat(perSecond, 'f', digits, 64))
		var path strings.Builder
		for column, n := range s.counts {
			if n > 0 {
				fmt.Fprintf(&path, "M%.0f %.1fh%.0fV%.0fh-%.0fz", leftMargin+columnWidth*float64(column),
					bottom-stripHeight*float64(n)/float64(most), columnWidth, bottom, columnWidth)
			}
		}
		p.put(`<path class="%v" d="%v"/>`, s.class, path.String())
	}
	for _, away := range t.away {
		x, to := p.x(away.from), p.x(away.to)
		p.put(`<g><title>no broker answered from %v to %v</title><rect class="away" x="%v" y="%v" width="%v" height="%v"/>`,
			clockText(away.from), clockText(away.to), x, topMargin, to-x, p.tracksEnd()-topMargin)
		p.put(`<text x="%v" y="%v" class="small">no broker</text></g>`, x, topMargin-3)
	}
}

// drawBuckets numbers the rows of a track where there is room.
func (p *picture) drawBuckets(tr *track) {
	const readable = 8.0
	if p.row < readable {
		return
	}
	for b := range p.timeline.options.Buckets {
		name := fmt.Sprint(b)
		if b == 0 {
			name = "bucket 0"
		}
		p.put(`<text x="%v" y="%v" class="tiny faint" text-anchor="end">%v</text>`, leftMargin-6, p.rowTop(tr, b)+7, name)
	}
}

// drawLife draws where a process lived, its name, and where it reached no broker.
func (p *picture) drawLife(tr *track, l *life) {
	x := p.x(l.from)
	p.put(`<rect class="life" x="%v" y="%v" width="%v" height="%v"/>`,
		x, tr.top+labelHeight, max(1, p.x(l.to)-x), p.rows()+marksHeight)
	p.put(`<text x="%v" y="%v" class="small"><tspan font-weight="600">%v</tspan> %v</text>`,
		x, tr.top+labelHeight-3, l.name, l.relay)
	for _, cut := range l.cuts {
		x := p.x(cut.from)
		p.put(`<rect class="away" x="%v" y="%v" width="%v" height="%v"><title>%v</title></rect>`,
			x, tr.top+labelHeight, p.x(cut.to)-x, p.rows()+marksHeight,
			fmt.Sprintf("%v reached no broker from %v to %v", l.label(), clockText(cut.from), clockText(cut.to)))
	}
}

func (p *picture) trackOf(l *life) *track {
	i := slices.IndexFunc(p.tracks, func(tr *track) bool { return slices.Contains(tr.lives, l) })
	return p.tracks[i]
}

func (p *picture) rowTop(tr *track, bucket int) float64 {
	return tr.top + labelHeight + p.row*float64(bucket)
}

// bar is the height of what is drawn in a row.
func (p *picture) bar() float64 { return p.row * 0.8 }

// drawTenures draws who held which lease valid, and a line from one owner to the
// next.
func (p *picture) drawTenures() {
	for b, tenures := range p.timeline.tenures {
		for i, held := range tenures {
			tr := p.trackOf(held.life)
			x, y := p.x(held.from), p.rowTop(tr, b)
			p.put(`<rect class="lease" x="%v" y="%v" width="%v" height="%v" fill="%v" fill-opacity=".38"><title>%v</title></rect>`,
				x, y, max(0.5, p.x(held.to)-x), p.bar(), colour(b),
				fmt.Sprintf("bucket %d: %v, %v to %v", b, held.life.label(), held.from.Round(time.Millisecond), held.to.Round(time.Millisecond)))
			if i == 0 || tenures[i-1].life == held.life {
				continue
			}
			before := tenures[i-1]
			p.put(`<path class="handover" stroke="%v" d="M%v %vL%v %v"><title>%v</title></path>`, colour(b),
				p.x(min(before.to, held.from)), p.rowTop(p.trackOf(before.life), b)+p.bar()/2, x, y+p.bar()/2,
				fmt.Sprintf("bucket %d: from %v to %v", b, before.life.label(), held.life.label()))
		}
	}
}

// drawAppends draws a tick for each record that the broker has from a process,
// also when it came after the lease or the process had ended.
func (p *picture) drawAppends(tr *track, l *life) {
	for b := range p.timeline.options.Buckets {
		var columns []int
		for column := range l.appends[b] {
			columns = append(columns, column)
		}
		if len(columns) == 0 {
			continue
		}
		slices.Sort(columns)
		var path strings.Builder
		y := p.rowTop(tr, b)
		for _, column := range columns {
			fmt.Fprintf(&path, "M%.1f %.1fv%.1f", leftMargin+float64(column)+0.5, y, p.bar())
		}
		p.put(`<path class="published" stroke="%v" d="%v"/>`, colour(b), path.String())
	}
}

func (p *picture) drawPauses(tr *track, l *life) {
	for _, stop := range l.pauses {
		name := strings.TrimPrefix(stop.name, "process.")
		x := p.x(stop.from)
		p.put(`<rect class="pause" fill="url(#%v)" fill-opacity=".55" x="%v" y="%v" width="%v" height="%v"><title>%v</title></rect>`,
			name, x, tr.top+labelHeight, p.x(stop.to)-x, p.rows()+marksHeight,
			fmt.Sprintf("%v %v for %v", l.label(), name, (stop.to-stop.from).Round(time.Millisecond)))
	}
}

// shapes are the marks of a process's events, around 0, 0.
var shapes = map[string]string{
	processDied:     "M-4-4L4 4M-4 4L4-4",
	processStopping: "M-4-3H4L0 4z",
	processEnded:    "M-3-3H3V3H-3z",
	processClockSet: "M0-4L4 0L0 4L-4 0z",
}

func (p *picture) drawMarks(tr *track, l *life) {
	y := tr.top + labelHeight + p.rows() + marksHeight/2
	for _, m := range l.marks {
		p.put(`<path class="mark" stroke-width="1.6" transform="translate(%v %v)" d="%v"><title>%v</title></path>`,
			p.x(m.at), y, shapes[m.name], fmt.Sprintf("%v: %v at %v", l.label(), m.name, m.at.Round(time.Millisecond)))
	}
}

func (p *picture) drawHealing() {
	if p.timeline.healed < 0 {
		return
	}
	x := p.x(p.timeline.healed)
	p.put(`<path class="healed" d="M%v %vV%v"/>`, x, topMargin, p.tracksEnd())
	p.put(`<text x="%v" y="%v" class="small good">healed</text>`, x+3, topMargin-14)
}

func (p *picture) drawViolations() {
	for _, v := range p.timeline.violations {
		x := p.x(v.at)
		p.put(`<g><title>%v</title><path class="broken" d="M%v %vV%v"/>`, v.String(), x, topMargin-10, p.tracksEnd())
		p.put(`<text x="%v" y="%v" class="alarm" text-anchor="end">%v</text></g>`, x-4, topMargin-4, v.Invariant)
	}
}

// drawLegend says what is what.
func (p *picture) drawLegend(y float64) {
	x := 12.0
	entry := func(sample, text string) {
		p.put(`<g transform="translate(%v %v)">`, x, y)
		p.text.WriteString(sample + "\n")
		p.put(`<text x="24" y="11">%v</text></g>`, text)
		x += 40 + labelLetter*float64(len(text))
		if x > leastWidth-80 {
			x, y = 12, y+18
		}
	}
	mark := func(name string) string {
		return `<path class="mark" stroke-width="1.6" transform="translate(9 7)" d="` + shapes[name] + `"/>`
	}
	entry(`<rect y="2" width="18" height="9" fill="`+colour(0)+`" fill-opacity=".38"/>`, "valid lease, one row and colour a bucket")
	entry(`<path stroke="`+colour(0)+`" d="M3 2v9M7 2v9M12 2v9"/>`, "record appended")
	entry(`<path class="handover" stroke="`+colour(1)+`" d="M1 2L17 12"/>`, "handover")
	entry(mark(processStopping), "asked to stop")
	entry(mark(processEnded), "has ended")
	entry(mark(processDied), "died")
	entry(mark(processClockSet), "clock set")
	entry(`<rect y="1" width="18" height="11" fill="url(#stalled)"/>`, "stalled")
	entry(`<rect y="1" width="18" height="11" fill="url(#suspended)"/>`, "suspended")
	entry(`<rect class="away" y="1" width="18" height="11"/>`, "no broker")
	entry(`<path class="healed" d="M9 0V13"/>`, "all faults end")
	entry(`<path class="broken" d="M9 0V13"/>`, "broken promise")
}
