package bucket

import (
	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/store"
)

// maxProbes is how many gaps are asked for in one step (protocol.md section 5).
const maxProbes = 8

// probe is the question whether one gap holds a message.
type probe struct {
	from, to int64
	before   int // index of the row behind the gap
	token    uint64
	filled   bool
}

// probe asks for the next gaps, eight at most; the rows up to the ninth follow
// when all are empty.
func (c *core) probe() {
	b := c.batch
	b.probes = b.probes[:0]
	for i := b.solid; i < len(b.rows); i++ {
		sequence := b.rows[i].Sequence
		if sequence > b.next {
			if len(b.probes) == maxProbes {
				break
			}
			from, to := b.next, sequence-1
			token := c.do(store.Probe{Bucket: c.cfg.Bucket, From: from, To: to, NotAfter: c.lease.validUntil})
			b.probes = append(b.probes, probe{from: from, to: to, before: i, token: token})
		}
		b.next = max(b.next, sequence+1)
	}
	if len(b.probes) == 0 {
		c.proved(len(b.rows))
	}
}

// probed takes one answer; the last one decides how far the rows are solid.
func (c *core) probed(m actors.Replied) {
	b := c.batch
	answer, ok := m.Reply.Result.(store.Probed)
	if !ok {
		c.failBatch()
		return
	}
	open := 0
	for i := range b.probes {
		p := &b.probes[i]
		if p.token == m.Token {
			p.token, p.filled = 0, answer.Filled
			c.emit(event.GapProbed{Bucket: c.cfg.Bucket, From: p.from, To: p.to, Filled: p.filled})
		}
		if p.token != 0 {
			open++
		}
	}
	if open > 0 {
		return
	}
	for _, p := range b.probes {
		if p.filled {
			b.cut = true
			c.proved(p.before)
			return
		}
	}
	c.proved(c.beforeNextGap())
}

// beforeNextGap is the index of the row behind the first gap that was not
// probed yet, or the number of rows.
func (c *core) beforeNextGap() int {
	b := c.batch
	for i := b.probes[len(b.probes)-1].before; i < len(b.rows)-1; i++ {
		if b.rows[i+1].Sequence > b.rows[i].Sequence+1 {
			return i + 1
		}
	}
	return len(b.rows)
}
