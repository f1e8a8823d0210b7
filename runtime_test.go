package relay

import (
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/bucketbrigade/relay/actors"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/store"
)

// A table that answers again is the last that is heard of an outage, however close
// together the last failure and the first answer come: who keeps what lasts, as the log
// does, would else keep an outage that is over.
func TestAnOutageEndsWithItsEnd(t *testing.T) {
	var (
		l        *live
		heard    []string
		mu       sync.Mutex // guards heard
		answered sync.WaitGroup
	)
	hear := func(name string) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, name)
	}
	l = newLive(Config{}.WithDefaults(), "A", []event.Observer{event.ObserverFunc(func(e event.Envelope) {
		switch e.Event.(type) {
		case event.StoreUnavailable: // while it is being told, another request is answered
			answered.Go(func() { l.note(actors.Replied{Request: store.Fetch{}}) })
			for range 10_000 {
				runtime.Gosched()
			}
			hear("unavailable")
		case event.StoreAvailable:
			hear("available")
		}
	})})
	defer l.close()
	l.note(actors.Replied{Request: store.Fetch{}, Reply: store.Reply{Class: store.Retriable, Err: store.ErrUnavailable}})
	answered.Wait()
	if want := []string{"unavailable", "available"}; !slices.Equal(heard, want) {
		t.Errorf("heard %v, want %v", heard, want)
	}
}
