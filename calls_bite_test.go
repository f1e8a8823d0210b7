package relay_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// badCode is code that no actor may have; each piece breaks one ban, which says
// so with the words in want.
var badCode = []struct{ name, file, imports, body, want string }{
	{"clock", "actor.go", `"time"`, `_ = time.Now()`, "time.Now"},
	{"clock as a value", "actor.go", `"time"`, `f := time.Now; _ = f`, "time.Now"},
	{"clock under another name", "actor.go", `x "time"`, `_ = x.Since(x.Time{})`, "time.Since"},
	{"until", "actor.go", `"time"`, `_ = time.Until(time.Time{})`, "time.Until"},
	{"sleep", "actor.go", `"time"`, `time.Sleep(1)`, "time.Sleep"},
	{"timer", "actor.go", `"time"`, `_ = time.NewTimer(1)`, "time.NewTimer"},
	{"ticker", "actor.go", `"time"`, `_ = time.NewTicker(1)`, "time.NewTicker"},
	{"tick", "actor.go", `"time"`, `_ = time.Tick(1)`, "time.Tick"},
	{"after", "actor.go", `"time"`, `_ = time.After(1)`, "time.After"},
	{"callback", "actor.go", `"time"`, `_ = time.AfterFunc(1, nil)`, "time.AfterFunc"},
	{"global random", "actor.go", `"math/rand/v2"`, `_ = rand.IntN(3)`, "rand.IntN"},
	{"old global random", "actor.go", `"math/rand"`, `rand.Shuffle(0, nil)`, "rand.Shuffle"},
	{"random id", "actor.go", `"github.com/google/uuid"`, `_ = uuid.New()`, "uuid.New"},
	{"random id as text", "actor.go", `"github.com/google/uuid"`, `_ = uuid.NewString()`, "uuid.NewString"},
	{"goroutine", "actor.go", ``, `go func() {}()`, "go statement"},
	{"channel", "actor.go", ``, `_ = make(chan int)`, "a channel"},
	{"send", "actor.go", ``, `c := make(chan int); c <- 1`, "a send"},
	{"receive", "actor.go", `"context"`, `<-context.Background().Done()`, "a receive"},
	{"select", "actor.go", ``, `select {}`, "a select"},
	{"loop over a channel", "actor.go", `"context"`, `for range context.Background().Done() { }`, "loop over a channel"},
	{"deadline", "actor.go", `"context"; "time"`, `_, _ = context.WithDeadline(context.Background(), time.Time{})`, "context.WithDeadline"},
	{"timeout", "actor.go", `"context"`, `_, _ = context.WithTimeout(context.Background(), 1)`, "context.WithTimeout"},
	{"cancel", "actor.go", `"context"`, `_, _ = context.WithCancel(context.Background())`, "context.WithCancel"},
	{"map order", "actor.go", ``, `n := 0; for k, v := range map[int]int{} { n += k * v }`, "loop over a map"},
	{"map order of a named type", "actor.go", ``, `type m map[int]int; for k := range (m{}) { println(k) }`, "loop over a map"},
	{"values collected", "actor.go", ``, `var vs []int; for _, v := range map[int]int{} { vs = append(vs, v) }`, "loop over a map"},
	{"keys unsorted", "actor.go", `"maps"`, `for k := range maps.Keys(map[int]int{}) { println(k) }`, "maps.Keys"},
	{"receive timeout", "actor.go", `"github.com/asynkron/protoactor-go/actor"`,
		`var c actor.Context; c.SetReceiveTimeout(1)`, "SetReceiveTimeout"},
	{"future", "actor.go", `"github.com/asynkron/protoactor-go/actor"`,
		`var c actor.Context; c.RequestFuture(nil, nil, 1)`, "RequestFuture"},
	{"future of a stop", "actor.go", `"github.com/asynkron/protoactor-go/actor"`,
		`var c actor.Context; c.StopFuture(nil)`, "StopFuture"},
	{"future held", "actor.go", `"github.com/asynkron/protoactor-go/actor"`, `var f *actor.Future; _ = f`, "Future"},
	{"reenter", "actor.go", `"github.com/asynkron/protoactor-go/actor"`,
		`var c actor.Context; c.ReenterAfter(nil, nil)`, "ReenterAfter"},
	{"stash", "actor.go", `"github.com/asynkron/protoactor-go/actor"`, `var c actor.Context; c.Stash()`, "Stash"},
	{"backoff", "actor.go", `"github.com/asynkron/protoactor-go/actor"`,
		`_ = actor.NewExponentialBackoffStrategy(1, 1)`, "NewExponentialBackoffStrategy"},
	{"context in a core", "core.go", `"github.com/asynkron/protoactor-go/actor"`, `var c actor.Context; _ = c`, "in a core"},
	{"spawning core", "pool.go", `"github.com/asynkron/protoactor-go/actor"`, `_ = actor.PropsFromFunc(nil)`, "in a core"},
	{"runtime in a core", "effects.go", `"github.com/bucketbrigade/relay/actors"`, `var r actors.Runtime; _ = r`, "Runtime in a core"},
}

// goodCode is what actors and cores are made of.
var goodCode = []struct{ name, file, imports, body string }{
	{"durations and instants", "core.go", `"time"; "github.com/bucketbrigade/relay/actors"`,
		`t := time.Unix(0, 0).Add(time.Second); _ = t.After(t); _ = actors.Elapsed(actors.Instant{}, actors.Instant{})`},
	{"a source of its own", "actor.go", `"math/rand/v2"`, `r := rand.New(rand.NewPCG(1, 2)); _ = r.IntN(3)`},
	{"the id of a row", "core.go", `"github.com/google/uuid"`, `_, _ = uuid.Parse("")`},
	{"keys collected and sorted", "core.go", `"maps"; "slices"`,
		`m := map[int]bool{}
		var keys []int
		for k := range m { keys = append(keys, k) }
		for k, v := range m { if v { keys = append(keys, k) } }
		slices.Sort(keys)
		for _, k := range slices.Sorted(maps.Keys(m)) { println(k) }`},
	{"an address", "core.go", `"github.com/asynkron/protoactor-go/actor"`, `var to *actor.PID; _ = to.Equal(to)`},
	{"an actor", "actor.go", `"github.com/asynkron/protoactor-go/actor"; "github.com/bucketbrigade/relay/actors"`,
		`var c actor.Context; var r actors.Runtime; c.Send(c.Self(), r.Now()); c.Stop(c.Self())`},
}

// Each ban finds the code that it is for, and none finds fault with code as it
// should be.
func TestBansBite(t *testing.T) {
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	overlay := map[string][]byte{}
	var patterns []string
	add := func(folder, file, imports, body string) {
		code := fmt.Sprintf("package %s\n\nimport (%s)\n\nfunc _() {\n\t%s\n}\n", folder, imports, body)
		overlay[filepath.Join(root, "actors", folder, file)] = []byte(code)
		patterns = append(patterns, "./actors/"+folder)
	}
	for i, c := range badCode {
		add(fmt.Sprintf("bad%d", i), c.file, c.imports, c.body)
	}
	for i, c := range goodCode {
		add(fmt.Sprintf("good%d", i), c.file, c.imports, c.body)
	}
	found := map[string][]string{}
	for _, p := range load(t, overlay, patterns...) {
		found[p.Name] = broken(p, coreBans())
	}
	for i, c := range badCode {
		if got := strings.Join(found[fmt.Sprintf("bad%d", i)], "\n"); !strings.Contains(got, c.want) {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
	}
	for i, c := range goodCode {
		if got := found[fmt.Sprintf("good%d", i)]; len(got) != 0 {
			t.Errorf("%s: found %q where nothing is wrong", c.name, got)
		}
	}
}
