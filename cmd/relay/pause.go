package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/bucketbrigade/relay/cmd/relay/picture"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/store"
)

// paused is what a command pauses or resumes: one bucket, one topic, or all buckets.
type paused struct {
	bucket int
	topic  string
	all    bool

	ofBucket, ofTopic bool // which was given
}

func pausedArguments(p *paused) []settings.Argument {
	return []settings.Argument{
		{Name: "bucket", Value: settings.Index(&p.bucket), Doc: "one bucket, from 0"},
		{Name: "topic", Value: settings.Text(&p.topic), Doc: "one topic, in every bucket"},
		{Name: "all", Value: settings.Switch(&p.all), Doc: "every bucket"},
	}
}

func (p *paused) check(positional []string, given func(string) bool) []settings.Fault {
	faults := noPositional(positional, given)
	p.ofBucket, p.ofTopic = given("bucket"), given("topic")
	forms := 0
	for _, isGiven := range []bool{p.ofBucket, p.ofTopic, given("all")} {
		if isGiven {
			forms++
		}
	}
	if forms != 1 {
		faults = append(faults, settings.Fault{Setting: "--bucket", Detail: ": give --bucket, --topic or --all, one of the three"})
	}
	return faults
}

// checkTable finds what is wrong with it for these settings.
func (p *paused) checkTable(s *settings.Settings) error {
	switch {
	case p.ofBucket:
		return checkBucket(s, p.bucket)
	case p.ofTopic:
		return checkTopic(p.topic)
	case !p.all:
		return usageErrorf("--all %v: give --bucket, --topic or --all", p.all)
	}
	return nil
}

// leases are those of the buckets that are meant, ascending.
func (p *paused) leases(f picture.Fleet) []picture.Lease {
	if p.ofBucket {
		return f.Leases[p.bucket : p.bucket+1]
	}
	return f.Leases
}

// pauseBuckets stops the delivery of buckets or of a topic for a while.
type pauseBuckets struct {
	app *app
	paused
	reason  string
	length  time.Duration // 0: without an end
	by      string
	consent consent
	output  format
}

// maxNote is how many characters who and why may have: relays read them again and again,
// with the lease or the marker that they stand on.
const maxNote = 200

func newPause(a *app) *cobra.Command {
	c := &pauseBuckets{app: a}
	return a.command(spec{
		use:   "pause --bucket N | --topic TOPIC | --all --reason REASON [--for DURATION]",
		short: "Stops the delivery of a bucket, a topic or all, for a while or until resumed",
		long: "Stops the delivery of one bucket, of one topic, or of all buckets, until relay resume, or for as\n" +
			"long as --for says. It is written in the table: it holds for whoever owns a bucket, now and later,\n" +
			"and across restarts. Relays learn of it within a lease renew interval. A paused bucket stays with\n" +
			"its owner, and its messages wait in their order; writers go on. What was published and not removed\n" +
			"yet is published again after the pause. The rows of a paused topic are set aside as they come, so\n" +
			"that other topics pass. A pause that is on gets another end, and another reason, by a second one.",
		example: "  relay pause --table orders --all --reason 'cluster upgrade' --for 1h\n" +
			"  relay pause --table orders --topic orders.placed --reason 'consumer is broken, see #4711'",
		groups: settings.Table | settings.Leases,
		arguments: append(pausedArguments(&c.paused),
			settings.Argument{Name: "reason", Value: settings.Text(&c.reason), Doc: "why; shown wherever the pause is, so no content",
				Required: "say why: whoever finds the pause must know"},
			settings.Argument{Name: "for", Value: settings.Duration(&c.length), Doc: "how long, such as 90m; not given: until resumed"},
			settings.Argument{Name: "by", Value: settings.Text(&c.by), Doc: "who asks; not given: user@host"},
			a.timeoutArgument(), outputArgument(&c.output)),
		consent: &c.consent,
		check:   c.check,
		run:     c.run,
	})
}

func (c *pauseBuckets) run(ctx context.Context, loaded *settings.Loader) error {
	s := &loaded.Settings
	if c.by == "" {
		c.by = c.app.whoAsks()
	}
	if err := c.checkNotes(s); err != nil {
		return err
	}
	client, f, err := c.app.readFleet(ctx, s)
	if err != nil {
		return err
	}
	until := store.NoEnd
	if c.length > 0 {
		until = min(until, f.Now().Add(c.length))
	}
	d := c.bucketChange(f, until)
	if c.ofTopic {
		if d, err = c.topicChange(ctx, client, s, f, until); err != nil {
			return advised(err, s)
		}
	}
	return advised(c.app.carryOut(ctx, client, d, c.consent, c.output), s)
}

func (c *pauseBuckets) checkNotes(s *settings.Settings) error {
	if err := c.checkTable(s); err != nil {
		return err
	}
	for _, note := range []struct{ flag, text string }{{"reason", c.reason}, {"by", c.by}} {
		if err := checkNote(note.flag, note.text); err != nil {
			return err
		}
	}
	return nil
}

// checkNote refuses what must not stand in the table as who or why: it is shown by every
// command, log and page.
func checkNote(flag, text string) error {
	if strings.TrimSpace(text) == "" || utf8.RuneCountInString(text) > maxNote || legible(text) != text {
		return usageErrorf("--%s %q: must not be blank, have %d characters at most, and all of them printable", flag, text, maxNote)
	}
	return nil
}

// bucketChange pauses buckets. Nobody is rung for: owners read their leases every round.
func (c *pauseBuckets) bucketChange(f picture.Fleet, until store.Ticks) change {
	d := change{question: fmt.Sprintf("pause all %s, %s", counted(len(f.Leases), "bucket"), endText(until))}
	if c.ofBucket {
		d.question = fmt.Sprintf("pause bucket %d, %s", c.bucket, endText(until))
	}
	leases := c.leases(f)
	for _, pause := range pausesOf(leases) {
		d.facts = append(d.facts, pause.sentence(" already"))
	}
	for _, lease := range leases {
		d.requests = append(d.requests, store.Pause{Bucket: lease.Bucket, Seen: lease.PausedUntil, Until: until, By: c.by, Reason: c.reason})
	}
	return d
}

// topicChange sets the topic aside in every bucket, with an end. Each owner is told as
// soon as its bucket is done. A topic that is being delivered again is left alone: its
// rows are on their way, and the end of that would end the pause, too.
func (c *pauseBuckets) topicChange(ctx context.Context, client *store.Client, s *settings.Settings, f picture.Fleet, until store.Ticks) (change, error) {
	aside, err := asideOf(ctx, client, s)
	if err != nil {
		return change{}, err
	}
	d := change{question: fmt.Sprintf("pause topic %s in %s, %s", legible(c.topic), counted(s.Relay.BucketCount, "bucket"), endText(until))}
	marked := aside.ofTopic(c.topic)
	d.facts = topicFacts(c.topic, marked, f.Now(), s.Relay.BucketCount, " already")
	before := map[int]store.Marker{}
	for _, m := range marked {
		before[m.bucket] = m.Marker
	}
	for b := range s.Relay.BucketCount {
		m := before[b]
		if m.RetryAt != 0 {
			return d, fmt.Errorf("topic %s is being delivered again in bucket %d, for %s: pause it when relay parked list does not show it any more, or call that off first: relay parked retry --call-off --topic %s",
				legible(c.topic), b, agoText(f, m.RetryAt), shellWord(c.topic))
		}
		d.requests = append(d.requests,
			store.PauseTopic{Bucket: b, Seen: m.ParkedAt, Marker: store.Marker{
				Topic: c.topic, Reason: c.reason, ParkedAt: max(f.Now(), m.ParkedAt+1), PausedUntil: until, PausedBy: c.by,
			}},
			store.Ring{Bucket: b, At: f.Now()})
	}
	return d, nil
}

// whoAsks names who runs this command, as user@host.
func (a *app) whoAsks() string {
	name := cmp.Or(a.variable("SUDO_USER"), a.variable("USER"), a.variable("LOGNAME"))
	if account, err := user.Current(); name == "" && err == nil {
		name = account.Username
	}
	name = cmp.Or(name, "somebody")
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}
