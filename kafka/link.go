package kafka

import (
	"time"

	"github.com/bucketbrigade/relay/actors/publisher"
)

const (
	// attemptTimeout bounds one question to the brokers, and so how long Close
	// waits for a background call.
	attemptTimeout = 2 * time.Second
	// attemptPause is between questions while no broker answers.
	attemptPause = 500 * time.Millisecond
	// patience is how many unanswered questions mean that no broker answers, when
	// the client itself has not seen all connections fail: a first connection with
	// TLS and SASL may well take more than one attemptTimeout.
	patience = 3
)

// link is what is known of the way to the brokers. The client's event "all
// brokers down" alone does not mean an outage: brokers also close idle
// connections. So it only makes the watch ask.
//
// Guarded by the producer's out.
type link struct {
	known    bool   // Reached or Unreached was said
	up       bool   // which one
	watching bool   // the watch runs
	down     bool   // all connections failed since a broker last answered
	reason   string // the last trouble that the client told
}

// watch asks the brokers until one answers. For who holds out.
func (p *producer) watch() {
	if p.link.watching || p.silent {
		return
	}
	if !p.enter() {
		return
	}
	p.link.watching = true
	go func() {
		defer p.calls.Done()
		for unanswered := 1; p.life.Err() == nil; unanswered++ {
			err := p.ask()
			p.out.Lock()
			if err == nil {
				p.link.watching = false
				p.answered()
				p.out.Unlock()
				return
			}
			if p.link.down || unanswered >= patience {
				p.unanswered(err)
			}
			p.out.Unlock()
			p.pause()
		}
	}()
}

// enter counts a background call, unless the producer was closed: free waits for
// those that were counted, and none is counted after it began to wait.
func (p *producer) enter() bool {
	p.gate.Lock()
	defer p.gate.Unlock()
	if p.closed {
		return false
	}
	p.calls.Add(1)
	return true
}

// ask puts one question to whichever broker is connected. The answer comes over
// the network, never from a cache.
func (p *producer) ask() error {
	_, err := p.client.GetMetadata(nil, false, int(attemptTimeout.Milliseconds()))
	return err
}

func (p *producer) pause() {
	timer := time.NewTimer(attemptPause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.life.Done():
	}
}

// answered notes that a broker answered. For who holds out.
func (p *producer) answered() {
	p.link.down, p.link.reason = false, ""
	if p.link.known && p.link.up {
		return
	}
	p.link.known, p.link.up = true, true
	p.tell(publisher.Reached{Producer: p.number})
}

// unanswered notes that none did. For who holds out.
func (p *producer) unanswered(err error) {
	if p.link.known && !p.link.up {
		return
	}
	p.link.known, p.link.up = true, false
	reason := p.link.reason
	if reason == "" {
		reason = p.codes.faultOf(err).Error()
	}
	p.tell(publisher.Unreached{Producer: p.number, Reason: reason})
}

// allDown notes that all connections failed. For who holds out.
func (p *producer) allDown() {
	p.link.down = true
	p.watch()
}
