package picture

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/bucketbrigade/relay/store"
)

// Cost is what a picture has consumed. What the SDK repeated by itself is not in it.
type Cost struct {
	Requests []Spent // ascending by name
}

// Spent is what the requests of one name have consumed.
type Spent struct {
	Request string // store.Request.RequestName
	Count   int
	Units   float64 // of read capacity, as the service says
}

// Total is the sum over all requests.
func (c Cost) Total() (requests int, units float64) {
	for _, s := range c.Requests {
		requests, units = requests+s.Count, units+s.Units
	}
	return requests, units
}

// meter notes what an Asker's requests consume. It is safe for concurrent use.
type meter struct {
	table Asker
	mutex sync.Mutex
	spent map[string]Spent // by name
}

// Do implements Asker.
func (m *meter) Do(ctx context.Context, r store.Request) store.Reply {
	reply := m.table.Do(ctx, r)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	s := m.spent[r.RequestName()]
	m.spent[r.RequestName()] = Spent{Request: r.RequestName(), Count: s.Count + 1, Units: s.Units + reply.Capacity}
	return reply
}

func (m *meter) cost() Cost {
	var c Cost
	for _, s := range m.spent {
		c.Requests = append(c.Requests, s)
	}
	slices.SortFunc(c.Requests, func(a, b Spent) int { return cmp.Compare(a.Request, b.Request) })
	return c
}
