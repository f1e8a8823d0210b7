package coordinator

import (
	"fmt"
	"time"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/actors/bucket"
	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/store"
)

// A failed child is replaced after a pause that doubles up to a limit.
const (
	firstPause = time.Second
	maxPause   = 5 * time.Minute
)

// failures are panics in a row: they begin anew when none came for twice the
// longest pause.
type failures struct {
	count int
	last  actors.Instant
}

// pause counts one more failure and returns the pause after it.
func (f *failures) pause(now actors.Instant) time.Duration {
	if f.count > 0 && actors.Elapsed(f.last, now) > 2*maxPause {
		f.count = 0
	}
	pause := min(firstPause<<min(f.count, 20), maxPause)
	f.count, f.last = f.count+1, now
	return pause
}

// maySpawn tells whether the pause after a panic of the bucket's actor is over.
func (c *core) maySpawn(b int) bool {
	notBefore := c.children[b].notBefore
	return notBefore.IsZero() || notBefore.PassedAt(c.now)
}

// spawn makes the actor of a new tenure.
func (c *core) spawn(b int, first any) {
	c.lastTenure++
	c.children[b].tenure = c.lastTenure
	c.busy++
	c.effects = append(c.effects, spawn{bucket: b, tenure: c.lastTenure, first: first})
}

// ended: a bucket's actor has released or lost its lease and stops.
func (c *core) ended(m bucket.Ended) {
	if c.children[m.Bucket].tenure != m.Tenure {
		return
	}
	c.children[m.Bucket].failures = failures{}
	c.drop(m.Bucket, m.Tenure)
	if !c.worked && store.Unusable(m.Err) {
		// It beats its heart and cannot claim: its share would stay without an owner.
		c.beginStop(fmt.Errorf("%w: %w", ErrTable, m.Err))
	}
}

func (c *core) drop(b int, tenure int64) {
	k := &c.children[b]
	if !k.quiesced {
		c.busy--
	}
	if k.asked {
		c.stop.asked--
	}
	k.tenure, k.quiesced, k.asked = 0, false, false
	c.effects = append(c.effects, forget{tenure})
	if c.leaving() {
		c.stopStep()
	}
}

// bucketFailed: a bucket's actor panicked. Its lease still names us, and a fresh
// actor resumes it after a pause; what it had published is abandoned.
func (c *core) bucketFailed(m bucket.Failed) {
	k := &c.children[m.Bucket]
	if k.tenure != m.Tenure {
		return
	}
	pause := k.failures.pause(c.now)
	k.notBefore = c.now.Add(pause)
	c.emit(event.ActorFailed{Actor: fmt.Sprintf("bucket %d", m.Bucket), Bucket: m.Bucket, Reason: m.Reason, Pause: pause})
	c.tellPublisher(publisher.Abandon{Bucket: m.Bucket})
	c.drop(m.Bucket, m.Tenure)
}

// childDied: an actor is gone. One that has said so itself is not known any
// more; any other one was stopped without a word.
func (c *core) childDied(m childDied) {
	c.bucketFailed(bucket.Failed{Bucket: m.bucket, Tenure: m.tenure, Reason: "stopped without a word"})
}

func (c *core) quiesced(m bucket.Quiesced) {
	k := &c.children[m.Bucket]
	if k.tenure != m.Tenure || k.quiesced {
		return
	}
	k.quiesced = true
	c.busy--
	if c.leaving() {
		c.stopStep()
	}
}

// openPublisher makes a publisher actor and tells the buckets of it.
func (c *core) openPublisher() {
	c.publisher++
	c.effects = append(c.effects, openPublisher{c.publisher})
}

// publisherDied: the publisher panicked; its producers were closed with it.
func (c *core) publisherDied(number int) {
	if number != c.publisher {
		return
	}
	pause := c.publisherFailures.pause(c.now)
	c.emit(event.ActorFailed{Actor: "publisher", Bucket: -1, Reason: "stopped", Pause: pause})
	c.arm(publisherTimer, pause)
}

func (c *core) tellPublisher(message any) {
	c.effects = append(c.effects, tellPublisher{message})
}
