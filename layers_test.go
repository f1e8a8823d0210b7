package relay_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/bucketbrigade/relay"

// Modules that some layers must not reach, not even through others.
const (
	protoactor = "github.com/asynkron/protoactor-go"
	confluent  = "github.com/confluentinc/confluent-kafka-go"
	franz      = "github.com/twmb/franz-go"
	zerolog    = "github.com/rs/zerolog"
	dynamodb   = "github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// layer is one row of the table of packages in docs/architecture.md. Paths are
// relative to the module; "." is the root package. A package belongs to the row
// with the longest path that is its own or a parent's, and may always import
// what belongs to the same row.
type layer struct {
	path string
	// mayImport are the packages of ours, without their subfolders; "*" is all.
	mayImport []string
	// mustNotReach are packages and whole modules, also through other packages.
	mustNotReach []string
	// mustNotImport are packages, with their subfolders, in its own imports.
	mustNotImport []string
	// mustNotCall are the calls banned in its code (calls_test.go).
	mustNotCall []ban
}

// actorImports are what would let an actor do I/O, lock or log by itself.
var actorImports = []string{"os", "net", "log", "sync", "syscall", "crypto/rand", zerolog, protoactor + "/scheduler"}

// byName are packages that look methods up by name, so that the linker would keep each
// method of every type (docs/adr/0005-methods.md).
var byName = []string{"text/template", "html/template"}

func layers() []layer {
	actor := func(path string, bans []ban, mayImport ...string) layer {
		return layer{
			path: path, mayImport: mayImport,
			mustNotReach:  []string{confluent, franz, module + "/kafka", module + "/telemetry", module + "/store/memtable"},
			mustNotImport: actorImports, mustNotCall: bans,
		}
	}
	return []layer{
		{path: ".", mayImport: []string{"actors", "actors/publisher", "actors/bucket", "actors/coordinator", "store", "outbox", "fsm", "event"},
			mustNotReach: []string{confluent, franz, module + "/kafka", module + "/telemetry", module + "/simulation", module + "/store/memtable"}},
		{path: "outbox",
			mustNotReach: []string{protoactor, confluent, franz, zerolog}},
		{path: "event",
			mustNotReach: []string{protoactor, confluent, franz, zerolog, dynamodb}, mustNotCall: pureBans()},
		{path: "store", mayImport: []string{"outbox"},
			mustNotReach: []string{protoactor, confluent, franz, zerolog}},
		{path: "store/memtable", mayImport: []string{"store", "outbox"},
			mustNotReach: []string{protoactor, confluent, franz, zerolog}, mustNotCall: pureBans()},
		{path: "store/storetest", mayImport: []string{"store", "outbox"},
			mustNotReach: []string{module + "/store/memtable"}},
		{path: "fsm",
			mustNotReach: []string{protoactor, confluent, franz, zerolog, dynamodb}, mustNotCall: pureBans()},
		actor("actors", actorBans(), "event", "store"),
		actor("actors/publisher", coreBans(), "actors", "outbox", "event"),
		actor("actors/bucket", coreBans(), "actors", "actors/publisher", "fsm", "store", "outbox", "event"),
		actor("actors/coordinator", coreBans(), "actors", "actors/bucket", "actors/publisher", "fsm", "store", "outbox", "event"),
		{path: "actors/publisher/publishertest", mayImport: []string{"actors", "actors/publisher", "outbox", "event"},
			mustNotReach: []string{confluent, franz, module + "/kafka"}},
		{path: "kafka", mayImport: []string{"actors/publisher", "outbox"},
			mustNotReach: []string{module + "/actors/bucket", module + "/actors/coordinator"}},
		{path: "telemetry", mayImport: []string{"event", "fsm"},
			mustNotReach: []string{protoactor, confluent, franz, dynamodb}, mustNotImport: byName},
		{path: "simulation", mayImport: []string{"*"},
			mustNotReach:  []string{confluent, franz, module + "/kafka", module + "/telemetry"},
			mustNotImport: []string{"C", "net", "crypto/rand"}, mustNotCall: worldBans()},
		{path: "simulation/explore", mayImport: []string{"*"},
			mustNotReach:  []string{confluent, franz, module + "/kafka", module + "/telemetry"},
			mustNotImport: []string{"C", "net", "crypto/rand"}, mustNotCall: append(worldBans(), goroutine)},
		{path: "cmd", mayImport: []string{"*"}, mustNotImport: byName},
		{path: "examples", mayImport: []string{"*"}},
		{path: "integration", mayImport: []string{"*"}},
	}
}

// listed is what go list says of a package, test files left out.
type listed struct {
	ImportPath string
	Imports    []string // by its own files
	Deps       []string // all that it is built from
}

// violations compares packages with the table.
func violations(table []layer, packages []listed) []string {
	var out []string
	for _, p := range packages {
		row, ok := rowOf(table, p.ImportPath)
		if !ok {
			out = append(out, fmt.Sprintf("%s is in no row of the layer table", p.ImportPath))
			continue
		}
		for _, imported := range p.Imports {
			if target, ours := rowOf(table, imported); ours && target.path != row.path && !row.mayImportOurs(imported) {
				out = append(out, fmt.Sprintf("%s imports %s, which its layer may not", p.ImportPath, imported))
			}
			for _, banned := range row.mustNotImport {
				if within(imported, banned) {
					out = append(out, fmt.Sprintf("%s imports %s, which its layer must not", p.ImportPath, imported))
				}
			}
		}
		for _, dep := range p.Deps {
			for _, banned := range row.mustNotReach {
				if within(dep, banned) {
					out = append(out, fmt.Sprintf("%s is built from %s, which its layer must not reach", p.ImportPath, dep))
				}
			}
		}
	}
	return out
}

func rowOf(table []layer, importPath string) (row layer, ok bool) {
	if !within(importPath, module) {
		return layer{}, false
	}
	path := strings.TrimPrefix(strings.TrimPrefix(importPath, module), "/")
	if path == "" {
		path = "."
	}
	for _, l := range table {
		if within(path, l.path) && len(l.path) >= len(row.path) {
			row, ok = l, true
		}
	}
	return row, ok
}

func (l layer) mayImportOurs(importPath string) bool {
	path := strings.TrimPrefix(importPath, module+"/")
	return slices.Contains(l.mayImport, "*") || slices.Contains(l.mayImport, path)
}

// within tells whether a path is parent or below it.
func within(path, parent string) bool {
	return path == parent || strings.HasPrefix(path, parent+"/")
}

// goTool runs the go command that runs this test.
func goTool(t *testing.T, arguments ...string) []byte {
	t.Helper()
	var stderr bytes.Buffer
	command := exec.Command("go", arguments...)
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(arguments, " "), err, stderr.String())
	}
	return out
}

// A package imports what its layer may import, and is not built from what its
// layer must not reach.
func TestLayers(t *testing.T) {
	var packages []listed
	decoder := json.NewDecoder(bytes.NewReader(goTool(t, "list", "-e", "-json=ImportPath,Imports,Deps", "./...")))
	for {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	for _, v := range violations(layers(), packages) {
		t.Error(v)
	}
	t.Logf("%d packages", len(packages))
}

// Each kind of violation is found.
func TestLayersBite(t *testing.T) {
	ours := func(path string) string { return module + "/" + path }
	for _, c := range []struct {
		name    string
		bad     listed
		message string
	}{
		{"no row", listed{ImportPath: ours("helpers")}, "is in no row"},
		{"sideways", listed{ImportPath: ours("actors/publisher"), Imports: []string{ours("actors/bucket")}}, "may not"},
		{"upwards", listed{ImportPath: ours("actors/bucket"), Imports: []string{ours("actors/coordinator")}}, "may not"},
		{"the root", listed{ImportPath: ours("actors/coordinator"), Imports: []string{module}}, "may not"},
		{"event knows nobody", listed{ImportPath: ours("event"), Imports: []string{ours("outbox")}}, "may not"},
		{"a sibling", listed{ImportPath: ours("store/storetest"), Imports: []string{ours("store/memtable")}}, "may not"},
		{"in a subfolder", listed{ImportPath: ours("fsm/internal/table"), Imports: []string{ours("event")}}, "may not"},
		{"no I/O in actors", listed{ImportPath: ours("actors/bucket"), Imports: []string{"net/http"}}, "must not"},
		{"no locks in actors", listed{ImportPath: ours("actors"), Imports: []string{"sync/atomic"}}, "must not"},
		{"no logger in actors", listed{ImportPath: ours("actors/publisher"), Imports: []string{"log/slog"}}, "must not"},
		{"no network in the simulation", listed{ImportPath: ours("simulation"), Imports: []string{"net"}}, "must not"},
		{"no templates in the binary", listed{ImportPath: ours("cmd/relay"), Imports: []string{"html/template"}}, "must not"},
		{"through another", listed{ImportPath: ours("outbox"), Deps: []string{confluent + "/v2/kafka"}}, "must not reach"},
		{"the root without cgo", listed{ImportPath: module, Deps: []string{ours("kafka")}}, "must not reach"},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := violations(layers(), []listed{c.bad})
			if len(found) != 1 || !strings.Contains(found[0], c.message) {
				t.Errorf("found %q, want one that says %q", found, c.message)
			}
		})
	}
	good := []listed{
		{ImportPath: ours("actors/bucket"), Imports: []string{"time", "math/rand/v2", ours("fsm"), ours("store"), protoactor + "/actor"}},
		{ImportPath: ours("cmd/relay"), Imports: []string{ours("kafka"), ours("telemetry"), "os"}, Deps: []string{confluent + "/v2/kafka"}},
		{ImportPath: ours("fsm"), Imports: []string{ours("fsm/internal/table")}},
	}
	if found := violations(layers(), good); len(found) != 0 {
		t.Errorf("found %q where nothing is wrong", found)
	}
}

// Every direct dependency has a line in docs/adr/0001-dependencies.md that says
// why it is there, and no line outlives its dependency.
func TestDependenciesAreDecided(t *testing.T) {
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal(goTool(t, "mod", "edit", "-json"), &mod); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("docs/adr/0001-dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	decided := map[string]int{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| [^|]+ \\|").FindAllSubmatch(page, -1) {
		decided[string(m[1])]++
	}
	for _, r := range mod.Require {
		if !r.Indirect && decided[r.Path] != 1 {
			t.Errorf("docs/adr/0001-dependencies.md has %d lines for %s, want 1", decided[r.Path], r.Path)
		}
		delete(decided, r.Path)
	}
	for path := range decided {
		t.Errorf("docs/adr/0001-dependencies.md has a line for %s, which go.mod does not require", path)
	}
}
