package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// declaredChecks are the ids that the code has: the constants check….
func declaredChecks(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "doctor_check.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, isValue := n.(*ast.ValueSpec)
		if isValue && strings.HasPrefix(spec.Names[0].Name, "check") {
			id, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		return true
	})
	slices.Sort(ids)
	return ids
}

// docs/doctor.md has every check, once, and none that is not made.
func TestEveryCheckIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, found := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| .+ \\| .*\\| .*\\|$").FindAllSubmatch(page, -1) {
		documented = append(documented, string(found[1]))
	}
	slices.Sort(documented)
	if declared := declaredChecks(t); !slices.Equal(declared, documented) {
		t.Errorf("the code has the checks\n%q\nand docs/doctor.md\n%q", declared, documented)
	}
}

// Every check is made, or skipped with a reason, in every examination: scripts may rely
// on each id.
func TestEveryCheckIsInEveryExamination(t *testing.T) {
	missing := newConsole(t)
	missing.describe = &setUp{fault: errForbidden}
	for name, c := range map[string]*console{"settled": settled(t), "undescribed": missing} {
		for _, args := range [][]string{nil, {"--brokers", "127.0.0.1:1", "--timeout", "100ms"}} {
			e := c.examine(t, args...)
			for _, id := range declaredChecks(t) {
				if !slices.ContainsFunc(e.Checks, func(check checkDocument) bool { return check.ID == id }) {
					t.Errorf("%s, %q: no check %s", name, args, id)
				}
			}
		}
	}
}
