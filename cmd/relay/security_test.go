package main

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// docs/security.md says what each role may do, and it is what relay table iam prints.
func TestSecurityPageHasThePermissions(t *testing.T) {
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range roles() {
		row := regexp.MustCompile("(?m)^\\| `" + string(of) + "` \\|(.*)$").FindSubmatch(page)
		if row == nil {
			t.Errorf("no line for the role %s", of)
			continue
		}
		var listed []string
		for _, action := range regexp.MustCompile("`(dynamodb:[A-Za-z]+)`").FindAllSubmatch(row[1], -1) {
			listed = append(listed, string(action[1]))
		}
		if want := actions(of); !slices.Equal(listed, want) {
			t.Errorf("%s: %v, want %v", of, listed, want)
		}
	}
}
