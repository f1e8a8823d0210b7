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
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	relay "github.com/bucketbrigade/relay"
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

// value is what a scrape has for a series, which must be there.
func (m measured) value(series string) float64 {
	m.t.Helper()
	answer := httptest.NewRecorder()
	m.export.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	_, after, found := strings.Cut("\n"+answer.Body.String(), "\n"+series+" ")
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

// requestNames reads from the source of package store what a relay's requests call
// themselves; those of people, and of who repairs a counter, no relay sends.
func requestNames(t *testing.T) (names []string) {
	t.Helper()
	paths, err := fs.Glob(os.DirFS("."), "store/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if path == "store/operator.go" || path == "store/counter.go" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
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
