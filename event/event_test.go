package event_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// eventTypes reads from the package's source which types are events, and the
// name that each gives itself.
func eventTypes(t *testing.T) map[string]string {
	t.Helper()
	names := map[string]string{}
	for _, file := range sources(t) {
		for _, d := range file.Decls {
			method, ok := d.(*ast.FuncDecl)
			if !ok || method.Recv == nil || method.Name.Name != "EventName" {
				continue
			}
			receiver, ok := method.Recv.List[0].Type.(*ast.Ident)
			if !ok {
				t.Errorf("an event is passed by value, but EventName has the receiver %T", method.Recv.List[0].Type)
				continue
			}
			literal, ok := method.Body.List[0].(*ast.ReturnStmt).Results[0].(*ast.BasicLit)
			if !ok {
				t.Errorf("the name of %s is no literal", receiver.Name)
				continue
			}
			name, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			names[receiver.Name] = name
		}
	}
	return names
}

func sources(t *testing.T) []*ast.File {
	t.Helper()
	paths, err := fs.Glob(os.DirFS("."), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// Scripts and dashboards search for names: each is "noun.participle", and no
// two events share one.
func TestNamesAreStableAndUnique(t *testing.T) {
	form := regexp.MustCompile(`^[a-z]+\.[a-z]+$`)
	types := map[string]string{}
	for goType, name := range eventTypes(t) {
		if !form.MatchString(name) {
			t.Errorf("the name of %s is %q, want the form noun.participle", goType, name)
		}
		if other, taken := types[name]; taken {
			t.Errorf("%s and %s are both called %q", goType, other, name)
		}
		types[name] = goType
	}
}

// Every struct of the package is an event: a type without EventName could never be
// emitted. The envelope is not, nor what events list.
func TestEveryTypeIsAnEvent(t *testing.T) {
	events := eventTypes(t)
	for _, file := range sources(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			part := slices.Contains([]string{"Envelope", "RelaySeen", "LeaseSeen", "Trace", "PausedTopic"}, spec.Name.Name)
			if _, isStruct := spec.Type.(*ast.StructType); !isStruct || part {
				return true
			}
			if events[spec.Name.Name] == "" {
				t.Errorf("%s has no EventName", spec.Name.Name)
			}
			return true
		})
	}
}

// An event never carries a record's key, value or headers: what is in one may
// be anybody's secret, and events go to logs. An array of bytes, as of an id, has no
// room for one.
func TestEventsCarryNoPayload(t *testing.T) {
	for _, file := range sources(t) {
		for _, d := range file.Decls {
			if types, ok := d.(*ast.GenDecl); ok && types.Tok == token.TYPE {
				ast.Inspect(types, func(n ast.Node) bool {
					if field, ok := n.(*ast.Field); ok {
						carriesNoPayload(t, field)
					}
					return true
				})
			}
		}
	}
}

func carriesNoPayload(t *testing.T, field *ast.Field) {
	t.Helper()
	if bytes, ok := field.Type.(*ast.ArrayType); ok && bytes.Len == nil {
		if element, ok := bytes.Elt.(*ast.Ident); ok && element.Name == "byte" {
			t.Errorf("a field of bytes: %v", field.Names)
		}
	}
	for _, name := range field.Names {
		if slices.Contains([]string{"Key", "Value", "Header", "Headers", "Secret", "Password"}, name.Name) {
			t.Errorf("a field called %s", name.Name)
		}
	}
}

// docs/events.md has one line for each event, and none for what is not one.
func TestEveryEventIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z.]+)` \\|").FindAllSubmatch(page, -1) {
		rows[string(m[1])]++
	}
	for goType, name := range eventTypes(t) {
		if rows[name] != 1 {
			t.Errorf("docs/events.md has %d lines for %s (%s), want 1", rows[name], name, goType)
		}
		delete(rows, name)
	}
	for name := range rows {
		t.Errorf("docs/events.md has a line for %s, which is no event", name)
	}
}
