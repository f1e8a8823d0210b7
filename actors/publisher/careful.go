package publisher

import "time"

// carefulIdle is how long a careful producer is kept that nobody uses.
const carefulIdle = time.Minute

// carefulFor is the careful producer of a batch. A careful producer is not
// gap-less, so a rejected record fails alone, and it takes the client's default
// size, so that only the broker's limit counts. Each batch has one of its own as
// long as there are enough: what one bucket waits for, a dead partition too, is
// nobody else's matter. Beyond that they share the one with the fewest users.
func (c *core) carefulFor(t *batch) *producer {
	if t.careful != nil {
		return t.careful
	}
	var least *producer
	count := 0
	for _, p := range c.producers {
		if !p.options.Careful || p.state == ending {
			continue
		}
		count++
		if least == nil || p.users < least.users {
			least = p
		}
	}
	if least == nil || least.users > 0 && count < c.cfg.CarefulProducers {
		least = c.open(Options{Careful: true})
	}
	least.users++
	least.uses++
	t.careful = least
	return least
}

// leaveCareful returns the batch's careful producer, when the batch is over or is
// back in its pool.
func (c *core) leaveCareful(t *batch) {
	p := t.careful
	if p == nil {
		return
	}
	t.careful = nil
	p.users--
	if p.users == 0 {
		c.wake(carefulIdle, idleDue{p.options.Number, p.uses})
	}
}

// idleDue closes a careful producer that nobody has used in the meantime.
func (c *core) idleDue(m idleDue) {
	p := c.producer(m.producer)
	if p == nil || p.state != open || p.users > 0 || p.uses != m.uses {
		return
	}
	p.state = ending
	c.close(p, 0)
}

// maxSpan bounds how far behind a guilty row a bucket goes carefully, one record at a
// time: good rows stand there too.
const maxSpan = 64

// convict takes note of a row that was rejected alone in its request.
func (b *bucket) convict(sequence int64) {
	if sequence <= b.guilty {
		return // again
	}
	b.guilty = sequence
	b.span = min(max(1, 2*b.span), maxSpan)
	b.careful = max(b.careful, sequence+b.span-1)
}
