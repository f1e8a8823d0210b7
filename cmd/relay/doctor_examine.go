package main

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
)

// examine makes all checks. The table is asked about everything at once, the brokers at
// the same time, and about topics when it is known which ones rows wait for. Each of
// these ends in time by itself; what has no answer until then is skipped, or failed, and
// the others are made all the same.
func (c *doctor) examine(ctx context.Context, s *settings.Settings, dynamo clients, table sequences) []checkDocument {
	outbox := &outboxChecks{app: c.app, client: table.client, settings: s, sequences: table}
	config := s.Relay
	config.Region = cmp.Or(dynamo.region, s.Region)
	brokers := &brokerChecks{settings: s, prefix: config.WithDefaults().TransactionalIDPrefix}
	topics := &topicChecks{settings: s, outbox: outbox, brokers: brokers}
	fleet := &fleetChecks{app: c.app, client: table.client, settings: s, outbox: outbox}
	first := []family{
		&tableChecks{api: dynamo.describe, settings: s},
		&permissionChecks{client: table.client, settings: s, role: c.role},
		fleet,
		outbox,
		brokers,
	}
	brokers.open()
	defer brokers.close()
	c.gather(ctx, first...)
	outbox.now = outbox.now.Add(-fleet.seen.Clock.Ahead()) // as the table's clock has it
	outbox.pauses = pausesOf(fleet.seen.Leases)
	c.gather(ctx, topics)
	var found []checkDocument
	for _, f := range append(first, topics) {
		found = slices.Concat(found, f.judge())
	}
	return found
}

// gather has families gather their facts, all at once.
func (c *doctor) gather(ctx context.Context, families ...family) {
	var gathering sync.WaitGroup
	for _, f := range families {
		gathering.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, c.app.timeout)
			defer cancel()
			f.gather(ctx)
		})
	}
	gathering.Wait()
}
