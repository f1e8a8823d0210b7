package simulation

import (
	"time"

	"github.com/bucketbrigade/relay/store"
)

// meter is what one partition of the table still serves, in units: a second's
// worth at most, filled evenly.
type meter struct {
	capacity    Capacity
	read, write float64 // left; negative after a request that took more than there was
	filled      time.Duration
}

func newMeter(c Capacity) *meter { return &meter{capacity: c, read: c.Read, write: c.Write} }

// left is what there is of what the request takes; nil: it takes nothing that is
// limited.
func (m *meter) left(r store.Request) *float64 {
	if m.capacity == (Capacity{}) || r.Lane() != store.Coordination {
		return nil
	}
	if _, reads := r.(store.ReadCoordination); reads {
		return &m.read
	}
	return &m.write
}

// admits tells whether the partition serves a request now.
func (m *meter) admits(r store.Request, now time.Duration) bool {
	left := m.left(r)
	if left == nil {
		return true
	}
	passed := (now - m.filled).Seconds()
	m.filled = now
	m.read = min(m.capacity.Read, m.read+passed*m.capacity.Read)
	m.write = min(m.capacity.Write, m.write+passed*m.capacity.Write)
	return *left > 0
}

// takes counts what a request that was served has consumed.
func (m *meter) takes(r store.Request, units float64) {
	if left := m.left(r); left != nil {
		*left -= units
	}
}

// attempts is how often the SDK sends a request that is throttled, and retryPause
// what it waits at most before the second time, doubled each time.
const (
	attempts   = 3
	retryPause = 100 * time.Millisecond
)
