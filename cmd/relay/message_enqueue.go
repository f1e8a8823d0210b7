package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/outbox"
)

// messageEnqueue puts one message into the outbox.
type messageEnqueue struct {
	app       *app
	topic     string
	key       string
	value     string
	valueFile string
	headers   []string
	partition int
	output    format

	// what was found among the flags and arguments, before the command runs
	hasKey, hasValue, hasPartition, fromStdin bool
}

func newMessageEnqueue(a *app) *cobra.Command {
	c := &messageEnqueue{app: a}
	return a.command(spec{
		use:   "enqueue --topic TOPIC [--value V | --value-file FILE | -]",
		short: "Puts one message into the outbox",
		long: "Puts one message into the outbox with the writer that services use. Without --key it has no key,\n" +
			"and without a value it is a tombstone: both differ from an empty one. \"-\" reads the value from\n" +
			"standard input. A header without \"=\" has a null value.",
		example: "  relay message enqueue --table orders --topic orders.placed --key 4711 --value '{\"total\":12}'\n" +
			"  cat order.json | relay message enqueue --table orders --topic orders.placed --key 4711 -",
		groups: settings.Table,
		arguments: []settings.Argument{
			{Name: "topic", Value: settings.Topic(&c.topic), Doc: "Kafka topic", Required: "a topic is required"},
			{Name: "key", Value: settings.OptionalText(&c.key), Doc: "record key; not given: none", Content: true},
			{Name: "value", Value: settings.OptionalText(&c.value), Doc: "record value; not given: none, a tombstone", Content: true},
			{Name: "value-file", Value: settings.File(&c.valueFile), Doc: "file with the value"},
			{Name: "header", Value: settings.Texts(&c.headers), Doc: "header as key=value; repeatable, in this order", Content: true},
			{Name: "partition", Value: settings.Index(&c.partition), Doc: "partition, whatever the key"},
			a.timeoutArgument(),
			outputArgument(&c.output),
		},
		check: c.check,
		run:   c.run,
	})
}

// check allows one source of the value.
func (c *messageEnqueue) check(positional []string, given func(string) bool) []settings.Fault {
	c.hasKey, c.hasValue, c.hasPartition = given("key"), given("value"), given("partition")
	sources := 0
	for _, has := range []bool{c.hasValue, given("value-file")} {
		if has {
			sources++
		}
	}
	var faults []settings.Fault
	for _, text := range positional {
		if text != "-" {
			// It is a value that was meant for --value, more likely than not.
			faults = append(faults, settings.Fault{Setting: "an argument", Detail: ": a value is given by --value, --value-file or -"})
			continue
		}
		c.fromStdin = true
		sources++
	}
	if sources > 1 {
		faults = append(faults, settings.Fault{Setting: "--value", Detail: ": give one of --value, --value-file and -"})
	}
	return faults
}

// enqueuedDocument is the JSON of the command.
type enqueuedDocument struct {
	ID     string `json:"id"`
	Topic  string `json:"topic"`
	Bucket int    `json:"bucket"`
}

func (c *messageEnqueue) run(ctx context.Context, loaded *settings.Loader) error {
	s := &loaded.Settings
	message, err := c.message(ctx)
	if err != nil {
		return err
	}
	dynamo, err := c.app.reach(ctx, s)
	if err != nil {
		return err
	}
	writer, err := outbox.NewWriter(dynamo.messages, writerOptions(s))
	if err != nil {
		return err
	}
	d := enqueuedDocument{ID: message.ID.String(), Topic: message.Topic, Bucket: message.Bucket(s.Relay.BucketCount)}
	if err := writer.Enqueue(ctx, message); err != nil {
		switch {
		case errors.Is(err, outbox.ErrAmbiguous):
			err = fmt.Errorf("%w\n  look for it with: relay message list --table %s --bucket %d", err, s.Relay.Table, d.Bucket)
		case errors.As(err, new(outOfPatience)):
			err = fmt.Errorf("%w\n  nothing was stored", err)
		}
		return advised(err, s)
	}
	if c.output == formatJSON {
		return printJSON(c.app.stdout, d)
	}
	c.app.printFolded(fmt.Sprintf("message %s for topic %s is in bucket %d", d.ID, legible(d.Topic), d.Bucket))
	return nil
}

func writerOptions(s *settings.Settings) outbox.Options {
	c := s.Relay
	return outbox.Options{Table: c.Table, PartitionKey: c.PartitionKey, SortKey: c.SortKey,
		KeyPrefix: c.KeyPrefix, BucketCount: c.BucketCount, MaxConcurrency: c.MaxConcurrency}
}

// message is the message that the arguments describe.
func (c *messageEnqueue) message(ctx context.Context) (outbox.Message, error) {
	m := outbox.Message{ID: uuid.New(), Topic: c.topic, CreatedAt: c.app.now()}
	if c.hasKey {
		m.Key = []byte(c.key)
	}
	if c.hasPartition {
		partition := int32(c.partition) // a number's limit is that of int32
		m.Partition = &partition
	}
	for _, text := range c.headers {
		key, value, hasValue := strings.Cut(text, "=")
		header := outbox.Header{Key: key}
		if hasValue {
			header.Value = []byte(value)
		}
		m.Headers = append(m.Headers, header)
	}
	var err error
	m.Value, err = interruptible(ctx, c.readValue)
	return m, err
}

// readValue reads no more than shows that a value is too large, wherever it comes from.
func (c *messageEnqueue) readValue() (value []byte, err error) {
	source := c.app.stdin
	switch {
	case c.hasValue:
		return []byte(c.value), nil
	case c.fromStdin:
	case c.valueFile != "":
		file, err := os.Open(c.valueFile)
		if err != nil {
			return nil, usageErrorf("--value-file: the file cannot be read: %w", settings.WithoutPath(err))
		}
		defer file.Close()
		source = file
	default:
		return nil, nil
	}
	if value, err = io.ReadAll(io.LimitReader(source, outbox.MaxItemBytes+1)); err != nil {
		return nil, usageErrorf("read the value: %w", settings.WithoutPath(err))
	}
	return value, nil // never nil: an empty file is an empty value, not a tombstone
}
