package relay_test

import (
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// ban is one thing that code of a layer must not do. It looks at one node of a
// type-checked file and says what is wrong with it, or "".
type ban func(source, ast.Node) string

// source is one file with its types.
type source struct {
	info *types.Info
	file string // the file's base name
	// sorted has the calls whose result is sorted at once.
	sorted map[ast.Expr]bool
}

// actorBans are design rule 1 and 2 of actors: nothing that is not a function
// of the messages and of what Runtime says.
func actorBans() []ban {
	return []ban{clock, globalRandom, newID, goroutine, channel, contextEnd, mapOrder, protoactorTimers}
}

// coreBans are those of packages that are a core and its actor.
func coreBans() []ban { return append(actorBans(), coreIsPure) }

// pureBans are for what must work alike in virtual time and live.
func pureBans() []ban { return []ban{clock, globalRandom, goroutine} }

// worldBans are for the simulation: one seed decides all of it.
func worldBans() []ban { return []ban{clock, globalRandom, newID} }

// used is the package and name of what an identifier means, resolved through
// renamed imports, method values and embedded fields.
func (s source) used(n ast.Node) (pkg, name string) {
	id, ok := n.(*ast.Ident)
	if !ok {
		return "", ""
	}
	object := s.info.Uses[id]
	if object == nil || object.Pkg() == nil {
		return "", ""
	}
	return object.Pkg().Path(), object.Name()
}

// isTopLevel tells a package's own function from a method.
func (s source) isTopLevel(n ast.Node) bool {
	f, ok := s.info.Uses[n.(*ast.Ident)].(*types.Func)
	return ok && f.Signature().Recv() == nil
}

func clock(s source, n ast.Node) string {
	names := []string{"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep"}
	if pkg, name := s.used(n); pkg == "time" && slices.Contains(names, name) && s.isTopLevel(n) {
		return "time." + name + " reads or waits for the real clock"
	}
	return ""
}

func globalRandom(s source, n ast.Node) string {
	sources := []string{"New", "NewPCG", "NewChaCha8", "NewSource", "NewZipf"}
	pkg, name := s.used(n)
	if (pkg == "math/rand" || pkg == "math/rand/v2") && s.isTopLevel(n) && !slices.Contains(sources, name) {
		return "rand." + name + " is seeded by nobody"
	}
	return ""
}

func newID(s source, n ast.Node) string {
	if pkg, name := s.used(n); pkg == "github.com/google/uuid" && strings.HasPrefix(name, "New") {
		return "uuid." + name + " is random"
	}
	return ""
}

func goroutine(_ source, n ast.Node) string {
	if _, ok := n.(*ast.GoStmt); ok {
		return "a go statement"
	}
	return ""
}

func channel(s source, n ast.Node) string {
	switch n := n.(type) {
	case *ast.ChanType:
		return "a channel"
	case *ast.SendStmt:
		return "a send to a channel"
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			return "a receive from a channel"
		}
	case *ast.SelectStmt:
		return "a select"
	case *ast.RangeStmt:
		if _, ok := under(s.info, n.X).(*types.Chan); ok {
			return "a loop over a channel"
		}
	}
	return ""
}

func contextEnd(s source, n ast.Node) string {
	pkg, name := s.used(n)
	names := []string{"WithCancel", "WithCancelCause", "WithDeadline", "WithDeadlineCause", "WithTimeout", "WithTimeoutCause", "AfterFunc"}
	if pkg == "context" && slices.Contains(names, name) {
		return "context." + name + " ends by a clock or by another goroutine"
	}
	return ""
}

// mapOrder bans what sees the order of a map. Allowed are a loop whose body is
// one append of the key, also under one condition, and maps.Keys and the like
// as the argument of slices.Sorted.
func mapOrder(s source, n ast.Node) string {
	switch n := n.(type) {
	case *ast.RangeStmt:
		if _, ok := under(s.info, n.X).(*types.Map); ok && !collectsKeys(n) {
			return "a loop over a map that does more than collect keys"
		}
	case *ast.CallExpr:
		switch pkg, name := s.used(callee(n)); {
		case pkg == "slices" && strings.HasPrefix(name, "Sorted") && len(n.Args) > 0:
			s.sorted[n.Args[0]] = true
		case pkg == "maps" && slices.Contains([]string{"Keys", "Values", "All"}, name) && !s.sorted[n]:
			return "maps." + name + " that is not sorted at once"
		}
	}
	return ""
}

func under(info *types.Info, x ast.Expr) types.Type {
	if t := info.TypeOf(x); t != nil {
		return t.Underlying()
	}
	return nil
}

// callee is the last identifier of what is called.
func callee(call *ast.CallExpr) ast.Node {
	fun := ast.Unparen(call.Fun)
	if index, ok := fun.(*ast.IndexExpr); ok {
		fun = index.X
	}
	if selector, ok := fun.(*ast.SelectorExpr); ok {
		return selector.Sel
	}
	return fun
}

func collectsKeys(loop *ast.RangeStmt) bool {
	body := loop.Body.List
	if len(body) == 1 {
		if condition, ok := body[0].(*ast.IfStmt); ok && condition.Init == nil && condition.Else == nil {
			body = condition.Body.List
		}
	}
	if len(body) != 1 {
		return false
	}
	assign, ok := body[0].(*ast.AssignStmt)
	if !ok || len(assign.Rhs) != 1 {
		return false
	}
	call, ok := assign.Rhs[0].(*ast.CallExpr)
	if !ok || len(call.Args) != 2 {
		return false
	}
	function, ok := call.Fun.(*ast.Ident)
	key, isKey := loop.Key.(*ast.Ident)
	appended, isName := call.Args[1].(*ast.Ident)
	return ok && function.Name == "append" && isKey && isName && key.Name == appended.Name
}

// protoactorTimers bans the parts of protoactor that run on the real clock, on
// goroutines of their own, or that lose messages; and its logger.
func protoactorTimers(s source, n ast.Node) string {
	names := []string{"SetReceiveTimeout", "CancelReceiveTimeout", "RequestFuture", "StopFuture", "PoisonFuture",
		"Future", "NewFuture", "ReenterAfter", "Stash", "Logger", "NewExponentialBackoffStrategy",
		"NewRestartingStrategy", "NewAllForOneStrategy"}
	if pkg, name := s.used(n); within(pkg, protoactor) && slices.Contains(names, name) {
		return "protoactor's " + name
	}
	return ""
}

// coreIsPure keeps the cores apart from the machinery: outside actor.go (and
// actor_*.go) a package knows an actor's address at most, and never the Runtime.
func coreIsPure(s source, n ast.Node) string {
	if strings.HasPrefix(s.file, "actor") {
		return ""
	}
	switch pkg, name := s.used(n); {
	case within(pkg, protoactor) && !slices.Contains([]string{"actor", "PID", "Equal", "Id", "Address"}, name):
		return "protoactor's " + name + " in a core"
	case pkg == module+"/actors" && name == "Runtime":
		return "Runtime in a core"
	}
	return ""
}

// broken lists what the code of a package does against its layer's bans.
func broken(p *packages.Package, bans []ban) []string {
	var out []string
	for _, file := range p.Syntax {
		path := p.Fset.Position(file.Package).Filename
		s := source{info: p.TypesInfo, file: filepath.Base(path), sorted: map[ast.Expr]bool{}}
		ast.Inspect(file, func(n ast.Node) bool {
			for _, b := range bans {
				if what := b(s, n); what != "" {
					at := p.Fset.Position(n.Pos())
					out = append(out, filepath.Base(at.Filename)+":"+at.String()[len(at.Filename)+1:]+": "+what)
				}
			}
			return true
		})
	}
	return out
}

// load type-checks packages, without their tests; overlay has files that are
// not on disk.
func load(t *testing.T, overlay map[string][]byte, patterns ...string) []*packages.Package {
	t.Helper()
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedSyntax |
			packages.NeedTypes | packages.NeedTypesInfo,
		Overlay: overlay,
	}, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			t.Errorf("%s does not compile, so it cannot be checked: %v", p.PkgPath, p.Errors[0])
		}
	}
	return loaded
}

// Nothing in a layer calls what its layer must not call.
func TestBannedCalls(t *testing.T) {
	table := layers()
	checked := 0
	for _, p := range load(t, nil, "./actors/...", "./store/...", "./event/...", "./fsm/...", "./simulation/...") {
		row, ok := rowOf(table, p.PkgPath)
		if !ok || len(row.mustNotCall) == 0 {
			continue
		}
		checked++
		for _, what := range broken(p, row.mustNotCall) {
			t.Errorf("%s/%s", row.path, what)
		}
	}
	t.Logf("%d packages", checked)
}
