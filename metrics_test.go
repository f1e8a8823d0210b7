package relay_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	relay "github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/event"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
	"github.com/bucketbrigade/relay/store/memtable"
	"github.com/bucketbrigade/relay/telemetry"
)

// measured runs a relay with metrics, as Prometheus reads them.
type measured struct {
	*running
	export *telemetry.Export
}

func runMeasured(t *testing.T, cfg relay.Config) measured {
	t.Helper()
	export, err := telemetry.NewExport(t.Context(), telemetry.ExportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := telemetry.NewMetrics(export.Provider(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	ready, observer := observed[event.RelayReady]()
	cfg.Observers = []event.Observer{metrics, observer}
	m := measured{run(t, cfg), export}
	receive(t, ready)
	synctest.Wait()
	return m
}

// scrape is what Prometheus is told.
func (m measured) scrape() string {
	answer := httptest.NewRecorder()
	m.export.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	return answer.Body.String()
}

// value is what a scrape has for a series, which must be there.
func (m measured) value(series string) float64 {
	m.t.Helper()
	_, after, found := strings.Cut("\n"+m.scrape(), "\n"+series+" ")
	text, _, _ := strings.Cut(after, "\n")
	value, err := strconv.ParseFloat(text, 64)
	if !found || err != nil {
		m.t.Fatalf("a scrape has no %s (%v)", series, err)
	}
	return value
}

func (m measured) keeps(outcome string) float64 {
	return m.value(fmt.Sprintf(`outbox_requests_total{outbox_name="orders",outcome=%q,request="keep"}`, outcome))
}

func (m measured) losses() float64 { return m.value(`outbox_lease_losses_total{outbox_name="orders"}`) }

func (m measured) inState(state string) float64 {
	return m.value(fmt.Sprintf(`outbox_buckets{outbox_name="orders",state=%q}`, state))
}

// failing is a table that fails each write of coordination in one way, while it is
// told to.
type failing struct {
	store.API
	how atomic.Pointer[func(context.Context) error]
}

func (f *failing) UpdateItem(ctx context.Context, in *sdk.UpdateItemInput, o ...func(*sdk.Options)) (*sdk.UpdateItemOutput, error) {
	if how := f.how.Load(); how != nil {
		return nil, (*how)(ctx)
	}
	return f.API.UpdateItem(ctx, in, o...)
}

// A table that does not take the writes of leases costs no lease by itself, however
// it fails: the buckets are withheld when their validity ends, the metrics say what
// the requests met, and not that anything was lost. When it is over, all is as before.
func TestFailingCoordinationIsNoLostLease(t *testing.T) {
	for _, c := range []struct {
		outcome string
		how     func(context.Context) error
	}{
		{"retriable", func(context.Context) error { return &types.ProvisionedThroughputExceededException{} }},
		{"ambiguous", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
	} {
		t.Run(c.outcome, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				db := newTable(t)
				cfg := config(db, newBroker())
				lane := &failing{API: db}
				cfg.Coordination = lane
				m := runMeasured(t, cfg)
				m.wantHolding("owned")
				lane.how.Store(&c.how)
				<-time.After(5 * time.Minute)
				m.wantHolding("withheld")
				for _, outcome := range []string{"refused", "retriable", "ambiguous"} {
					if n := m.keeps(outcome); (n > 0) != (outcome == c.outcome) {
						t.Errorf("%v keeps are counted as %s", n, outcome)
					}
				}
				lane.how.Store(nil)
				<-time.After(time.Minute)
				m.wantHolding("owned")
				m.stop()
			})
		})
	}
}

// wantHolding demands that all buckets are held in one state, and none was lost.
func (m measured) wantHolding(state string) {
	m.t.Helper()
	owned, in, lost := m.value(`outbox_buckets_owned{outbox_name="orders"}`), m.inState(state), m.losses()
	if all := float64(schema.BucketCount); owned != all || in != all || lost != 0 {
		m.t.Errorf("%v buckets are held, %v of them %s, %v leases lost", owned, in, state, lost)
	}
}

// A lease that another relay has taken is counted as lost, once.
func TestALostLeaseIsCounted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db := newTable(t)
		m := runMeasured(t, config(db, newBroker()))
		m.wantHolding("owned")
		seize(t, db, 3, "a stranger")
		<-time.After(time.Minute)
		if lost, owned := m.losses(), m.inState("owned"); lost != 1 || owned != float64(schema.BucketCount-1) {
			t.Errorf("%v leases are counted as lost, %v buckets owned", lost, owned)
		}
		m.stop()
	})
}

// seize writes a bucket's lease as a stranger would who took it.
func seize(t *testing.T, db *memtable.DB, bucket int, stranger string) {
	t.Helper()
	lease := schema.Key(schema.CoordinationKey(), outbox.LeaseSortKey(bucket))
	lease[outbox.AttrOwner] = &types.AttributeValueMemberS{Value: stranger}
	expires := outbox.Ticks(time.Now().Add(time.Hour))
	lease[outbox.AttrExpiresAtUtc] = &types.AttributeValueMemberN{Value: strconv.FormatInt(expires, 10)}
	if _, err := db.PutItem(t.Context(), &sdk.PutItemInput{TableName: &schema.Table, Item: lease}); err != nil {
		t.Fatal(err)
	}
}

// What the metrics know beforehand, to stand at zero, is all that there is: no
// request of the store is missing from a scrape before it was ever sent.
func TestAllRequestsAreKnownToMetrics(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := runMeasured(t, config(newTable(t), newBroker()))
		for _, name := range requestNames(t) {
			for _, outcome := range []store.Class{store.Done, store.Refused, store.Retriable, store.Ambiguous} {
				m.value(fmt.Sprintf(`outbox_requests_total{outbox_name="orders",outcome=%q,request=%q}`, outcome, name))
			}
		}
		m.stop()
	})
}

// So does each class of failures to publish.
func TestAllFailureClassesAreKnownToMetrics(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := runMeasured(t, config(newTable(t), newBroker()))
		acknowledged := publisher.Class(0).String() // what is no failure
		for class := publisher.Class(1); class.String() != acknowledged; class++ {
			m.value(fmt.Sprintf(`outbox_publish_failures_total{class=%q,outbox_name="orders"}`, class))
		}
		m.stop()
	})
}

// Each cause for which a bucket looks for messages stands at zero before it has
// occurred, and none that never can.
func TestAllWakeupCausesAreKnownToMetrics(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := runMeasured(t, config(newTable(t), newBroker()))
		series := regexp.MustCompile(`(?m)^outbox_wakeups_total\{cause="([^"]*)",`)
		var known []string
		for _, match := range series.FindAllStringSubmatch(m.scrape(), -1) {
			known = append(known, match[1])
		}
		m.stop()
		slices.Sort(known)
		if causes := wakeupCauses(t); !slices.Equal(known, causes) {
			t.Errorf("metrics know the causes %q, a bucket has %q", known, causes)
		}
	})
}

// wakeupCauses reads from the source of actors/bucket why a bucket is woken: the words
// that wake is called with and that woken is set to.
func wakeupCauses(t *testing.T) (causes []string) {
	t.Helper()
	cause := func(e ast.Expr) {
		word, literal := e.(*ast.BasicLit)
		if !literal {
			return
		}
		if text, err := strconv.Unquote(word.Value); err != nil {
			t.Fatal(err)
		} else if text != "" { // which ends a wish
			causes = append(causes, text)
		}
	}
	for _, file := range parsed(t, "actors/bucket/*.go") {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if f, method := n.Fun.(*ast.SelectorExpr); method && f.Sel.Name == "wake" {
					cause(n.Args[0])
				}
			case *ast.AssignStmt:
				for i, left := range n.Lhs {
					if f, field := left.(*ast.SelectorExpr); field && f.Sel.Name == "woken" && len(n.Rhs) == len(n.Lhs) {
						cause(n.Rhs[i])
					}
				}
			}
			return true
		})
	}
	slices.Sort(causes)
	return slices.Compact(causes)
}

// requestNames reads from the source of package store what a relay's requests call
// themselves; those of people, and of commands that look into a table or repair it, no
// relay sends.
func requestNames(t *testing.T) (names []string) {
	t.Helper()
	ofPeople := []string{"store/operator.go", "store/pause.go", "store/counter.go", "store/try.go", "store/calloff.go", "store/findkey.go"}
	for path, file := range parsed(t, "store/*.go") {
		if slices.Contains(ofPeople, path) {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			method, ok := n.(*ast.FuncDecl)
			if !ok || method.Name.Name != "RequestName" {
				return true
			}
			name, err := strconv.Unquote(method.Body.List[0].(*ast.ReturnStmt).Results[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
			return false
		})
	}
	if len(names) < 10 {
		t.Fatalf("found only the requests %v", names)
	}
	return names
}

// parsed is the source of some files but for tests, by path.
func parsed(t *testing.T, pattern string) map[string]*ast.File {
	t.Helper()
	paths, err := fs.Glob(os.DirFS("."), pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	files := map[string]*ast.File{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		if files[path], err = parser.ParseFile(token.NewFileSet(), path, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	return files
}
