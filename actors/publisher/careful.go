package publisher

import "cmp"

// carefulFor is the careful producer of a batch. A careful producer is not
// gap-less, so a rejected record fails alone, and it takes the client's default
// size, so that only the broker's limit counts. Each batch has one of its own as
// long as there are enough: what one bucket waits for, a dead partition too, is
// nobody else's matter. Beyond that they share: a batch takes one that has nothing
// outstanding, of these the one with the fewest users, and another one when its own
// has got somebody else's record meanwhile. The batch has nothing outstanding.
func (c *core) carefulFor(t *batch) *producer {
	own := t.careful
	if own != nil && own.outstanding == 0 {
		return own
	}
	var best *producer
	count := 0
	for _, p := range c.producers {
		if !p.options.Careful || p.state == ending {
			continue
		}
		count++
		if best == nil || cmp.Or(cmp.Compare(p.outstanding, best.outstanding), cmp.Compare(p.users, best.users)) < 0 {
			best = p
		}
	}
	switch {
	case best == nil || best.users > 0 && count < c.cfg.CarefulProducers && !c.careful.failing():
		best = c.open(Options{Careful: true})
	case own != nil && best.outstanding > 0:
		return own
	}
	c.leaveCareful(t)
	best.users++
	best.uses++
	t.careful = best
	return best
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
