package telemetry

import (
	"fmt"
	"strings"

	g "maragu.dev/gomponents"
	"maragu.dev/gomponents/html"
)

// document is the page. Its parts escape whatever text they are given.
func (v *view) document() g.Node {
	return html.Doctype(html.HTML(html.Lang("en"),
		html.Head(
			html.Meta(html.Charset("utf-8")),
			html.Meta(html.Name("viewport"), html.Content("width=device-width, initial-scale=1")),
			html.TitleEl(g.Text(v.Status.Relay+": "+v.Status.State)),
			html.Link(html.Rel("icon"), html.Href("data:,")),
			html.NoScript(html.Meta(g.Attr("http-equiv", "refresh"), html.Content("10"))),
			html.StyleEl(g.Raw(pageStyle)),
		),
		html.Body(
			html.Main(html.ID("live"),
				v.header(), v.tiles(), v.Chart.node(), v.lastTroubles(),
				g.Iff(v.Fleet != nil, func() g.Node { return v.Fleet.node() }),
				v.ownBuckets(),
			),
			html.Details(
				html.Summary(g.Text("Settings in effect")),
				html.Table(html.Class("settings"), html.TBody(g.Map(v.Settings, setting.node))),
			),
			html.Footer(html.Class("faint"),
				html.A(html.Href("status"), g.Text("/status")), g.Text(" · "),
				html.A(html.Href("metrics"), g.Text("/metrics")), g.Text(" · "),
				html.Span(html.ID("freshness"), g.Text("refreshed every 10 seconds")),
			),
			html.Script(g.Raw(pageScript)),
		),
	))
}

func (v *view) header() g.Node {
	var facts []string
	if v.Since != "" {
		facts = append(facts, "since "+v.Since)
	}
	facts = append(facts, v.Status.Mode)
	if v.Status.Incarnation != "" {
		facts = append(facts, "incarnation "+v.Status.Incarnation)
	}
	facts = append(facts, "at "+v.Now+" UTC")
	return html.Header(
		html.H1(g.Text(v.Status.Relay+" "), badge(v.Tone, v.Status.State)),
		faint(strings.Join(facts, " · ")),
	)
}

func (v *view) tiles() g.Node {
	return html.Dl(html.Class("tiles"), g.Map(v.Tiles, func(t tile) g.Node {
		return html.Div(html.Class(t.Tone),
			html.Dt(g.Text(t.Label)), html.Dd(g.Text(t.Value)),
			g.If(t.Note != "", html.Dd(html.Class("note"), g.Text(t.Note))),
		)
	}))
}

func (c chart) node() g.Node {
	attribute := func(name string, n int) g.Node { return g.Attr(name, fmt.Sprint(n)) }
	return html.Figure(
		html.SVG(g.Attr("viewBox", fmt.Sprintf("0 0 %d %d", c.Width, c.Height)), g.Attr("preserveAspectRatio", "none"), html.Role("img"),
			html.Aria("label", fmt.Sprintf("messages published in each of the last 60 seconds, at most %d", c.Most)),
			g.Map(c.Bars, func(b bar) g.Node {
				return g.El("rect", attribute("x", b.X), attribute("y", b.Y), attribute("width", 4), attribute("height", b.Height),
					html.TitleEl(g.Text(b.Title)))
			}),
		),
		html.FigCaption(g.Textf("messages published in each of the last 60 seconds; the highest bar is %d", c.Most)),
	)
}

func (v *view) lastTroubles() g.Node {
	lines := g.Map(v.Troubles, func(t trouble) g.Node {
		return html.Li(html.Class(t.Tone),
			html.Time(g.Text(t.Time)), g.Text(" "), html.B(g.Text(t.Event)), g.Text(" "+t.Message+" "),
			g.If(t.Times != "", g.Group{html.B(g.Text(t.Times)), g.Text(" ")}),
			html.Span(html.Class("facts"), g.Text(t.Facts)),
		)
	})
	return html.Section(
		html.H2(g.Text("Last troubles")),
		g.If(len(lines) > 0, html.Ul(html.Class("troubles"), lines)),
		g.If(len(lines) == 0, faint("none")),
	)
}

func (f *fleetView) node() g.Node {
	return html.Section(
		html.H2(g.Text("Fleet "), faintPart("as of "+f.Seen)),
		g.Map(f.Notes, note.node),
		table([]string{"relay", "state", "mode", "last seen", "owns", "buckets"}, g.Map(f.Relays, func(r relayRow) g.Node {
			return html.Tr(html.Class(r.Tone),
				cell("relay", r.ID, g.If(r.Self, g.Group{g.Text(" "), faintPart("(this one)")})),
				cell("state", r.State), cell("mode", r.Mode), cell("last seen", r.LastSeen),
				cell("owns", fmt.Sprint(r.Owned)), cell("buckets", r.Buckets),
			)
		})),
		more(f.Hidden, "more"),
	)
}

func (v *view) ownBuckets() g.Node {
	states := g.Map(v.States, func(s stateCount) g.Node {
		return g.Group{badge(s.Tone, fmt.Sprintf("%d %s", s.Count, s.State)), g.Text(" ")}
	})
	rows := g.Map(v.Buckets, func(b bucketRow) g.Node {
		trouble := b.Paused + b.LastError
		if b.Paused != "" && b.LastError != "" {
			trouble = b.Paused + " · " + b.LastError
		}
		return html.Tr(html.Class(b.Tone),
			cell("bucket", fmt.Sprint(b.Bucket)), cell("state", b.State), cell("batch", b.BatchState), cell("for", b.For),
			cell("last sequence", fmt.Sprint(b.LastSequence)), cell("waiting", b.Pending), cell("last error", trouble),
		)
	})
	return html.Section(
		html.H2(g.Text("Buckets of this relay")),
		html.P(html.Class("states"), states, g.If(len(states) == 0, faintPart("this relay owns none"))),
		g.Map(v.Topics, func(t string) g.Node { return note{"topic " + t, warn}.node() }),
		g.If(len(rows) > 0, table([]string{"bucket", "state", "batch", "for", "last sequence", "waiting", "last error, or pause"}, rows)),
		more(v.Hidden, "more that are well"),
	)
}

func (s setting) node() g.Node { return html.Tr(html.Th(g.Text(s.Name)), html.Td(g.Text(s.Value))) }

func (n note) node() g.Node { return html.P(html.Class("note"), badge(n.Tone, n.Text)) }

func badge(tone, text string) g.Node { return html.Span(html.Class("badge "+tone), g.Text(text)) }

func faint(text string) g.Node { return html.P(html.Class("faint"), g.Text(text)) }

func faintPart(text string) g.Node { return html.Span(html.Class("faint"), g.Text(text)) }

// table is one with a head; on a narrow screen the cells' own labels are shown.
func table(head []string, rows g.Group) g.Node {
	return html.Table(
		html.THead(html.Tr(g.Map(head, func(label string) g.Node { return html.Th(g.Text(label)) }))),
		html.TBody(rows),
	)
}

func cell(label, text string, further ...g.Node) g.Node {
	return html.Td(html.Data("label", label), g.Text(text), g.Group(further))
}

// more says how many are not listed, if any.
func more(hidden int, what string) g.Node {
	return g.If(hidden > 0, html.P(html.Class("faint"),
		g.Textf("and %d %s: see ", hidden, what), html.A(html.Href("status"), g.Text("/status"))))
}
