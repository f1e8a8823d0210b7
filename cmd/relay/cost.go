package main

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bucketbrigade/relay/cmd/relay/cost"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/outbox"
)

// reckonCost says what a fleet and a workload ask of the table. It sends nothing.
type reckonCost struct {
	app            *app
	relays         int
	buckets        int
	rate           float64
	size           int
	perTransaction int
	notified       float64
	prices         prices
	output         format

	bucketsGiven bool // found among the flags, before the command runs
}

// Defaults of the workload that is reckoned.
const (
	defaultCostRelays = 3
	defaultCostSize   = 1000
	maxCostRate       = 1e7
)

func newCost(a *app) *cobra.Command {
	c := &reckonCost{app: a, relays: defaultCostRelays, buckets: outbox.DefaultBucketCount, size: defaultCostSize, perTransaction: 1}
	return a.command(spec{
		use:   "cost",
		short: "Reckons requests and capacity units a month for a workload, idle cost apart",
		long: "Reckons how many requests a fleet sends in a month of 730 hours, and how many read and write units\n" +
			"they consume: while it is idle, what messages add, and what writing them takes. It asks no table and\n" +
			"nothing on the net: prices, if costs are to be shown, come from flags or a file. The intervals are\n" +
			"those of the settings. docs/cost.md has the formulas, and what they leave out.",
		example: "  relay cost --rate 100 --size 2KB --relays 4 --buckets 16\n" +
			"  relay cost --config relay.yaml --rate 20 --read-price 0.125 --write-price 0.625 --currency USD",
		groups: settings.Costs,
		arguments: append(append([]settings.Argument{
			{Name: "rate", Value: settings.NumberFromZero(&c.rate, maxCostRate), Doc: "messages a second; 0: the outbox is idle"},
			{Name: "size", Value: settings.Size(&c.size), Doc: "of a message's topic, key, value and headers together"},
			{Name: "relays", Value: bounded{settings.Count(&c.relays), &c.relays, outbox.MaxBucketCount}, Doc: "how many run"},
			{Name: "buckets", Value: bounded{settings.Count(&c.buckets), &c.buckets, outbox.MaxBucketCount}, Doc: "of the outbox; not given: bucket-count of the settings"},
			{Name: "per-transaction", Value: bounded{settings.Count(&c.perTransaction), &c.perTransaction, outbox.MaxCallItems}, Doc: "messages of one bucket that are committed together, 1 to 100"},
			{Name: "notified", Value: settings.NumberFromZero(&c.notified, 1), Doc: "share of the commits of which the owner is told at once, 0 to 1, by writers in its process"},
		}, pricesArguments(&c.prices)...), outputArgument(&c.output)),
		check: c.check,
		run:   c.run,
	})
}

func (c *reckonCost) check(positional []string, given func(string) bool) []settings.Fault {
	c.bucketsGiven = given("buckets")
	return noPositional(positional, given)
}

func (c *reckonCost) run(_ context.Context, loaded *settings.Loader) error {
	priced, err := c.prices.load()
	if err != nil {
		return err
	}
	w := c.workload(&loaded.Settings)
	if err := w.Validate(); err != nil {
		return usageErrorf("%s", strings.NewReplacer("MessageBytes", "--size", "PerTransaction", "--per-transaction").Replace(err.Error()))
	}
	if c.output == formatJSON {
		return printJSON(c.app.stdout, c.document(w, priced))
	}
	c.print(w, priced)
	return nil
}

func (c *reckonCost) workload(s *settings.Settings) cost.Workload {
	schema := s.Schema()
	if c.bucketsGiven {
		schema.BucketCount = c.buckets
	}
	return cost.Workload{
		Schema: schema, Relays: c.relays, RelayIDBytes: len(s.Relay.RelayID),
		PollInterval: s.Relay.PollInterval, LeaseDuration: s.Relay.LeaseDuration, LeaseRenewInterval: s.Relay.LeaseRenewInterval,
		SampleInterval: s.MetricsInterval, BatchSize: s.Relay.BatchSize, MaxBatchBytes: s.Relay.MaxBatchBytes,
		Rate: c.rate, MessageBytes: c.size, PerTransaction: float64(c.perTransaction), Notified: c.notified,
	}
}

// costPart is a part of the work, and its month.
type costPart struct {
	name string
	bill cost.Bill
}

func costParts(w cost.Workload) []costPart {
	parts := []costPart{{"idle", w.Idle().For(cost.Month)}}
	if w.Rate > 0 {
		parts = append(parts, costPart{"load", w.Load().For(cost.Month)}, costPart{"writers", w.Writers().For(cost.Month)})
	}
	return parts
}

func costTotal(parts []costPart) cost.Line {
	var totals cost.Bill
	for _, part := range parts {
		totals = append(totals, part.bill.Total())
	}
	return totals.Total()
}

// monthDocument is the JSON of the command. Figures are of a month.
type monthDocument struct {
	MonthHours float64              `json:"monthHours"`
	Workload   costWorkloadDocument `json:"workload"`
	Idle       costPartDocument     `json:"idle"`
	Load       *costPartDocument    `json:"load"`    // beyond idle; null without messages
	Writers    *costPartDocument    `json:"writers"` // without their business items; null without messages
	Total      costLineDocument     `json:"total"`
	Currency   *string              `json:"currency"` // null: no prices were given
	Advice     []adviceDocument     `json:"advice"`
}

type costWorkloadDocument struct {
	Relays             int     `json:"relays"`
	Buckets            int     `json:"buckets"`
	Rate               float64 `json:"rate"` // messages a second
	SizeBytes          int     `json:"sizeBytes"`
	PerTransaction     int     `json:"perTransaction"`
	Notified           float64 `json:"notified"`
	BatchSize          int     `json:"batchSize"`
	PollInterval       float64 `json:"pollInterval"`
	LeaseDuration      float64 `json:"leaseDuration"`
	LeaseRenewInterval float64 `json:"leaseRenewInterval"`
	MetricsInterval    float64 `json:"metricsInterval"`
}

type costPartDocument struct {
	Requests []costLineDocument `json:"requests"`
	Total    costLineDocument   `json:"total"`
}

type costLineDocument struct {
	Request    string   `json:"request"`
	Requests   float64  `json:"requests"`
	ReadUnits  float64  `json:"readUnits"`
	WriteUnits float64  `json:"writeUnits"`
	Cost       *float64 `json:"cost"` // null: no prices were given
}

type adviceDocument struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

func (c *reckonCost) document(w cost.Workload, priced bool) monthDocument {
	d := monthDocument{MonthHours: cost.Month.Hours(), Advice: []adviceDocument{}, Workload: costWorkloadDocument{
		Relays: w.Relays, Buckets: w.Schema.BucketCount, Rate: w.Rate, SizeBytes: w.MessageBytes, PerTransaction: c.perTransaction, Notified: w.Notified,
		BatchSize: w.BatchSize, PollInterval: w.PollInterval.Seconds(), LeaseDuration: w.LeaseDuration.Seconds(),
		LeaseRenewInterval: w.LeaseRenewInterval.Seconds(), MetricsInterval: w.SampleInterval.Seconds(),
	}}
	parts := costParts(w)
	for _, part := range parts {
		p := costPartDocument{Requests: []costLineDocument{}, Total: c.line(part.bill.Total(), priced)}
		for _, l := range part.bill {
			p.Requests = append(p.Requests, c.line(l, priced))
		}
		switch part.name {
		case "idle":
			d.Idle = p
		case "load":
			d.Load = &p
		default:
			d.Writers = &p
		}
	}
	d.Total = c.line(costTotal(parts), priced)
	if priced {
		d.Currency = &c.prices.currency
	}
	for _, a := range w.Advice() {
		d.Advice = append(d.Advice, adviceDocument{a.ID, a.Text})
	}
	return d
}

func (c *reckonCost) line(l cost.Line, priced bool) costLineDocument {
	d := costLineDocument{Request: l.Request, Requests: math.Round(l.Requests), ReadUnits: math.Round(l.Read), WriteUnits: math.Round(l.Write)}
	if priced {
		money := c.prices.of(l)
		d.Cost = &money
	}
	return d
}

func (c *reckonCost) print(w cost.Workload, priced bool) {
	out := c.app.stdout
	load := "no messages"
	if w.Rate > 0 {
		load = fmt.Sprintf("%v messages a second of %s", w.Rate, settings.Size(&c.size).String())
	}
	fmt.Fprintf(out, "%s, %s, %s; in a month of %v hours:\n", counted(w.Relays, "relay"), counted(w.Schema.BucketCount, "bucket"), load, cost.Month.Hours())
	columns := []column{{title: "PART"}, {title: "REQUEST"}, {title: "REQUESTS", right: true}, {title: "READ UNITS", right: true}, {title: "WRITE UNITS", right: true}}
	if priced {
		columns = append(columns, column{title: strings.TrimSpace("COST " + c.prices.currency), right: true})
	}
	var rows [][]string
	add := func(part string, l cost.Line) {
		row := []string{part, l.Request, grouped(l.Requests), grouped(l.Read), grouped(l.Write)}
		if priced {
			row = append(row, fmt.Sprintf("%.2f", c.prices.of(l)))
		}
		rows = append(rows, row)
	}
	parts := costParts(w)
	for _, part := range parts {
		for _, l := range part.bill {
			add(part.name, l)
		}
		add(part.name, part.bill.Total())
	}
	total := costTotal(parts)
	if len(parts) > 1 {
		add("all", total)
	}
	c.app.printTable(columns, rows)
	fmt.Fprintf(out, "on average %.1f read and %.1f write units a second\n", total.Read/cost.Month.Seconds(), total.Write/cost.Month.Seconds())
	for _, a := range w.Advice() {
		fmt.Fprintln(out, wrapped(a.Text, "  ", ""))
	}
}

// grouped is a whole number with a comma at each thousand.
func grouped(n float64) string {
	digits := fmt.Sprintf("%.0f", n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
