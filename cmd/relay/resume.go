package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bucketbrigade/relay/cmd/relay/picture"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/store"
)

// resume ends pauses.
type resume struct {
	app *app
	paused
	consent consent
	output  format
}

func newResume(a *app) *cobra.Command {
	c := &resume{app: a}
	return a.command(spec{
		use:   "resume --bucket N | --topic TOPIC | --all",
		short: "Lets a paused bucket or topic, or all paused buckets, go on",
		long: "Lets one bucket, one topic, or all buckets go on that are paused. Relays learn of it within a lease\n" +
			"renew interval, and deliver what has gathered, in its order. --all leaves topics alone that are\n" +
			"paused by themselves, and names them.",
		example: "  relay resume --table orders --all\n" +
			"  relay resume --table orders --topic orders.placed",
		groups:    settings.Table | settings.Leases,
		arguments: append(pausedArguments(&c.paused), a.timeoutArgument(), outputArgument(&c.output)),
		consent:   &c.consent,
		check:     c.check,
		run:       c.run,
	})
}

func (c *resume) run(ctx context.Context, loaded *settings.Loader) error {
	s := &loaded.Settings
	if err := c.checkTable(s); err != nil {
		return err
	}
	if c.ofTopic {
		return c.runTopic(ctx, s)
	}
	client, f, err := c.app.readFleet(ctx, s)
	if err != nil {
		return err
	}
	d := c.bucketChange(f)
	if c.all {
		d.facts = append(d.facts, c.topicsLeft(ctx, client, s, f)...)
	}
	return advised(c.app.carryOut(ctx, client, d, c.consent, c.output), s)
}

func (c *resume) runTopic(ctx context.Context, s *settings.Settings) error {
	client, f, found, err := c.app.readAside(ctx, s)
	if err != nil {
		return err
	}
	d, err := c.topicChange(s, f, found)
	if err != nil {
		return err
	}
	if err := c.app.carryOut(ctx, client, d, c.consent, c.output); err != nil {
		return advised(err, s)
	}
	return found.unreadableFault() // one of them may be of the topic
}

// topicsLeft tells of the topics that stay paused, and how each is resumed. That they
// cannot be looked at keeps nobody from resuming buckets.
func (c *resume) topicsLeft(ctx context.Context, client *store.Client, s *settings.Settings, f picture.Fleet) (facts []string) {
	found, err := asideOf(ctx, client, s)
	if err == nil {
		err = found.unreadableFault()
	}
	if err != nil {
		facts = append(facts, "whether topics are paused by themselves is not known: "+legible(err.Error()))
	}
	for _, pause := range found.pausedTopics(f.Now()) {
		facts = append(facts, fmt.Sprintf("topic %s stays paused%s %s", legible(pause.topic), whereText(pause.buckets, s.Relay.BucketCount), pause.text),
			"  to let it go on: relay resume --topic "+shellWord(pause.topic))
	}
	return facts
}

// bucketChange ends the pauses of the buckets that have one. What is left of one that is
// over goes with them.
func (c *resume) bucketChange(f picture.Fleet) change {
	leases := c.leases(f)
	var d change
	on := 0
	for _, pause := range pausesOf(leases) {
		on += len(pause.buckets)
		d.facts = append(d.facts, pause.sentence(""))
	}
	var over sharing[store.Ticks]
	for _, lease := range leases {
		if lease.PausedUntil == 0 {
			continue
		}
		if lease.State != picture.Paused {
			over.add(lease.PausedUntil, lease.Bucket)
		}
		d.requests = append(d.requests, store.Resume{Bucket: lease.Bucket, Seen: lease.PausedUntil})
	}
	for _, until := range over.keys {
		d.facts = append(d.facts, fmt.Sprintf("the pause of %s has been over for %s", bucketsText(over.buckets[until]), agoText(f, until)))
	}
	d.question = fmt.Sprintf("let %s go on", counted(on, "paused bucket"))
	return d
}

// topicChange asks for the retry of the topic, which is what resumes it.
func (c *resume) topicChange(s *settings.Settings, f picture.Fleet, found aside) (change, error) {
	at := f.Now()
	var d change
	marked := found.ofTopic(c.topic)
	for _, m := range marked {
		d.requests = append(d.requests, store.AskRetry{Bucket: m.bucket, Topic: m.Topic, At: at}, store.Ring{Bucket: m.bucket, At: at})
	}
	if len(marked) == 0 {
		return d, errors.Join(fmt.Errorf("topic %s is neither paused nor set aside", legible(c.topic)), found.unreadableFault())
	}
	d.facts = topicFacts(c.topic, marked, at, s.Relay.BucketCount, "")
	d.question = fmt.Sprintf("have topic %s delivered again, in %s", legible(c.topic), counted(len(marked), "bucket"))
	return d, nil
}
