package simulation_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// caseIDs are the ids of all cases, by their letter. Numbers that are missing were
// given up when the cases were collected.
var caseIDs = map[string]string{
	"L": "01 02 05 06 07 08 09 10 11 12 14 15 17 18 23 25 26",
	"O": "01 02 04 06 07 10 12 14 16 19 21 22",
	"K": "01 02 03",
	"D": "01 02 05 06 08 10 11 13 14 15 16 18",
	"X": "01 03 05 07 08 09 11 13 16 17 18 20 21",
	"F": "01 02 03 05 06 09 10",
	"A": "01 02 04 05 06",
	"S": "01 03 04 05 07",
	"W": "01 03 04 05",
	"P": "01 02 04 05 07 09 10",
	"M": "01 02 03 04 05 06 07 08 09 10 11 12",
	"H": "01 02 03 04 05",                   // pauses
	"T": "01 02 03 04 05 06 07 08 09 10 11", // rows of the peer's event table
}

// covered reads where each case is shown, by its id.
func covered(t *testing.T) map[string]string {
	t.Helper()
	index, err := os.ReadFile("testdata/cases.index")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`^([A-Z]-\d\d) P[012] [^|]+ \| (.+)$`)
	places := map[string]string{}
	for text := range strings.Lines(string(index)) {
		text = strings.TrimSpace(text)
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		m := line.FindStringSubmatch(text)
		if m == nil {
			t.Errorf("this line is no case: %s", text)
			continue
		}
		if places[m[1]] != "" {
			t.Errorf("%s stands twice", m[1])
		}
		places[m[1]] = m[2]
	}
	return places
}

// Every case is shown somewhere that exists, or says what it waits for; and every
// scenario belongs to a case.
func TestEveryCaseIsCovered(t *testing.T) {
	places := covered(t)
	used := map[string]bool{}
	for letter, numbers := range caseIDs {
		for _, number := range strings.Fields(numbers) {
			id := letter + "-" + number
			where, known := places[id]
			delete(places, id)
			switch {
			case !known:
				t.Errorf("case %s is missing in testdata/cases.index", id)
			case strings.HasPrefix(where, "later: "):
			default:
				for _, place := range strings.Fields(where) {
					used[place] = true
					if !exists(t, place) {
						t.Errorf("case %s: %s does not exist", id, place)
					}
				}
			}
		}
	}
	for id := range places {
		t.Errorf("testdata/cases.index has %s, which is no case", id)
	}
	for _, path := range scenarioFiles(t) {
		if name := filepath.Base(path); !used[name] {
			t.Errorf("%s belongs to no case of testdata/cases.index", name)
		}
	}
}

// exists tells whether a place is there: a scenario, a test of a folder, or a path
// from the root of the repository.
func exists(t *testing.T, place string) bool {
	t.Helper()
	if folder, test, isTest := strings.Cut(place, ":"); isTest {
		files, err := filepath.Glob(filepath.Join("..", folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(source), "\nfunc "+test+"(") {
				return true
			}
		}
		return false
	}
	path := filepath.Join("..", place)
	if !strings.Contains(place, "/") {
		path = filepath.Join("testdata", place)
	}
	_, err := os.Stat(path)
	return err == nil
}

// An expectation of an event that does not exist would be met for ever: each name
// in a scenario is an event of the relay or of the simulation.
func TestScenariosNameRealEvents(t *testing.T) {
	known := map[string]bool{}
	quoted := regexp.MustCompile("[\"`]([a-z]+\\.[a-z]+)[\"`]")
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(sources, "../docs/events.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range quoted.FindAllStringSubmatch(string(text), -1) {
			known[m[1]] = true
		}
	}
	counted := regexp.MustCompile(`(?m)^[^#\n]*?(?:\d|no) ([a-z]+\.[a-z]+)`)
	for _, path := range scenarioFiles(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range counted.FindAllStringSubmatch(string(text), -1) {
			if !known[m[1]] {
				t.Errorf("%s: %s is no event", path, m[1])
			}
		}
	}
}
