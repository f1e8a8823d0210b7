package explore

import (
	"crypto/sha256"
	"reflect"
	"strconv"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// stateHash stands for a state: 128 bits of its SHA-256.
type stateHash [16]byte

func hashOf(code []byte) (h stateHash) {
	sum := sha256.Sum256(code)
	copy(h[:], sum[:])
	return h
}

// Report is what a search has found.
type Report struct {
	States int // different ones
	Steps  int // choices that were tried
	Ends   int // states at which nothing was left to choose
	Healed int // different states on the way from there to a settled fleet
	Depth  int // choices on the longest path
	// Complete tells that everything within the bounds was seen, or that the search
	// has ended at a violation.
	Complete  bool
	Violation *Violation // nil: none
}

// search is one run of Search.
type search struct {
	o        Options
	plant    plant
	tables   *tables
	copies   copies
	runtimes []*runtime
	world    *world // that is being worked on
	seen     map[stateHash]int32
	healed   map[stateHash]bool
	path     []choice
	report   Report
	buffer   []byte
	again    func(stateHash, *world) // nil: a test looks at each state that is reached
}

// Search looks at every state that can be reached within the bounds, and stops at the
// first broken promise.
func Search(o Options) Report {
	o = o.withDefaults()
	x := newSearch(o)
	x.report.Complete = true
	x.visit(x.beginning())
	if v := x.report.Violation; v != nil {
		x.tell(v)
	}
	return x.report
}

func newSearch(o Options) *search {
	return &search{
		o: o, plant: o.plant, tables: newTables(o), copies: copies{},
		seen: map[stateHash]int32{}, healed: map[stateHash]bool{},
	}
}

// beginning is a world in which nothing has started.
func (x *search) beginning() *world {
	w := &world{
		search: x, table: x.tables.of(nil, nil, veil{}), named: make([]naming, x.o.Buckets),
		left: budget{x.o.Faults, x.o.Stops, x.o.Restarts},
	}
	if x.o.Former {
		w.table = x.tables.with(w.table, x.formerRecord())
	}
	x.beginDelivery(w)
	x.beginAside(w)
	return w
}

// visit looks at a state, and at all that follow from it.
func (x *search) visit(w *world) {
	if w.broken != nil {
		x.report.Violation = w.broken
		return
	}
	code := w.encode()
	depth := int32(len(x.path))
	if x.again != nil {
		x.again(code, w)
	}
	if before, ok := x.seen[code]; ok && (x.o.MaxDepth == 0 || before <= depth) {
		return
	} else if !ok {
		x.report.States++
	}
	x.seen[code] = depth
	x.report.Depth = max(x.report.Depth, len(x.path))
	if x.o.MaxDepth > 0 && len(x.path) == x.o.MaxDepth || x.o.MaxStates > 0 && x.report.States >= x.o.MaxStates {
		x.report.Complete = false
		return
	}
	choices := w.choices()
	if len(choices) == 0 {
		x.report.Ends++
		x.heal(w.copy())
		return
	}
	for _, c := range choices {
		x.report.Steps++
		x.path = append(x.path, c)
		x.visit(w.after(c))
		if x.report.Violation != nil {
			return
		}
		x.path = x.path[:len(x.path)-1]
	}
}

// busiest is how many requests and batches may come back in one tick of a healthy
// fleet.
const busiest = 1000

// heal lets a world go on without faults until it must be settled, and demands that
// it is. Then an operator retries all that is set aside, after which nothing must be.
func (x *search) heal(w *world) {
	w.heal()
	o := x.o
	settling := o.Lease + o.Skew + 3*o.Interval + 2*o.requestTicks()
	if o.parking() { // a tenure must be old enough, and keys take turns
		settling += 4 * o.Interval
	}
	if !x.settle(w, settling) {
		return
	}
	if alive := w.settled(); alive && o.parking() && w.broken == nil {
		w.healing = emptying
		w.retryAll()
		if !x.settle(w, 6*o.Interval) {
			return
		}
		w.emptied()
	}
	x.report.Violation = w.broken
}

// settle lets so many ticks go by. It is false when what follows was seen before, or
// is a violation.
func (x *search) settle(w *world, ticks int) bool {
	for end := w.tick + ticks; w.tick < end; {
		for n := 0; w.urgent(); n++ {
			if n > busiest {
				w.breaks("I-10", "more than %d requests in one tick, and no end", busiest)
			}
			w.deliverFirst()
			if w.broken != nil {
				x.report.Violation = w.broken
				return false
			}
		}
		code := w.encode()
		if x.healed[code] {
			return false
		}
		x.healed[code] = true
		x.report.Healed++
		if w.tick == end-2*x.o.Interval {
			w.refused = 0
		}
		w.goOn()
		w.check()
		if w.broken != nil {
			x.report.Violation = w.broken
			return false
		}
	}
	return true
}

// preset makes a coordinator believe that it has completed rounds before.
func preset(a actor.Actor, rounds uint64) {
	core := open(reflect.ValueOf(a).Elem().FieldByName("core")).Elem()
	open(core.FieldByName("rounds")).SetUint(rounds)
}

// formerRecord is that of the second relay, which has stopped long ago.
func (x *search) formerRecord() map[string]types.AttributeValue {
	at := store.Instant{Wall: epoch - 2*x.o.leaseDuration()}.Ticks()
	schema := x.tables.schema
	i := schema.Key(schema.CoordinationKey(), outbox.RelaySortKey("b"))
	stamp := &types.AttributeValueMemberN{Value: strconv.FormatInt(int64(at), 10)}
	i[outbox.AttrLastSeenUtc], i[outbox.AttrStoppedAtUtc] = stamp, stamp
	return i
}
