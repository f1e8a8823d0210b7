package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
)

// docs/cli.md is what the commands say of themselves. After a change:
//
//	go test ./cmd/relay -run Reference -update
func TestReferenceIsWhatTheCommandsSay(t *testing.T) {
	got := newConsole(t).run("reference", "markdown")
	if got.code != exitDone {
		t.Fatalf("%+v", got)
	}
	golden(t, filepath.Join("..", "..", "..", "docs", "cli.md"), got.stdout)
}

// Nothing is missing from it: no command that is not hidden, no flag of one, no setting.
func TestReferenceIsComplete(t *testing.T) {
	c := newConsole(t)
	page := c.run("reference", "markdown").stdout
	for _, command := range leaves((&app{stdin: strings.NewReader(""), stdout: os.Stdout, stderr: os.Stderr}).root()) {
		help := c.run(append(strings.Fields(command), "--help")...).stdout
		_, section, found := strings.Cut(page, "\n## relay "+command+"\n")
		if found == strings.HasPrefix(command, "reference ") {
			t.Errorf("relay %s: described: %t", command, found)
			continue
		}
		section, _, _ = strings.Cut(section, "\n## ")
		for _, flag := range regexp.MustCompile(`(?m)^ {6}--([a-z-]+)`).FindAllStringSubmatch(help, -1) {
			if found && flag[1] != "help" && !strings.Contains(section, "`"+flag[1]+"`") && !strings.Contains(section, "`--"+flag[1]+"`") {
				t.Errorf("relay %s: --%s is not described", command, flag[1])
			}
		}
	}
	for _, s := range settings.Describe() {
		if strings.Count(page, "| `"+s.Name+"`<br>") != 1 {
			t.Errorf("the setting %s is not described once", s.Name)
		}
	}
}

// Links within the page lead somewhere.
func TestReferenceLinks(t *testing.T) {
	page := newConsole(t).run("reference", "markdown").stdout
	var headings []string
	for _, h := range regexp.MustCompile(`(?m)^##+ (.+)$`).FindAllStringSubmatch(page, -1) {
		headings = append(headings, strings.ReplaceAll(strings.ToLower(h[1]), " ", "-"))
	}
	for _, link := range regexp.MustCompile(`\(#([^)]+)\)`).FindAllStringSubmatch(page, -1) {
		if !slices.Contains(headings, link[1]) {
			t.Errorf("#%s leads nowhere", link[1])
		}
	}
}

// Each command has a man page, with its flags, and a build can be repeated.
func TestManPages(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1772366400")
	directory := filepath.Join(t.TempDir(), "man")
	if got := newConsole(t).run("reference", "man", directory); got.code != exitDone || got.stdout != "" {
		t.Fatalf("%+v", got)
	}
	for name, wants := range map[string][]string{
		"relay.1":                 {"relay-run(1)", "relay-message(1)", "Mar 2026"},
		"relay-run.1":             {"--lease-duration", "SIGTERM"},
		"relay-message-enqueue.1": {"--value-file"},
	} {
		page, err := os.ReadFile(filepath.Join(directory, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(page), want) {
				t.Errorf("%s has no %q:\n%s", name, want, page)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(directory, "relay-reference.1")); err == nil {
		t.Error("a hidden command has a page")
	}
}

// A shell is offered what may be written, and files only where a file is wanted.
func TestCompletions(t *testing.T) {
	c := newConsole(t)
	for line, want := range map[string]string{
		"run --mode ":                     "ordered\nfenced\n:4",
		"run --mode=f":                    "ordered\nfenced\n:4", // the shell chooses
		"run --poison ":                   "park\nblock\ndead-letter\n:4",
		"run --log-level ":                "trace\ndebug\ninfo\nwarn\nerror\n:4",
		"run --position-headers=":         "on\noff\n:4",
		"run --table ":                    ":4",
		"run --config ":                   ":0",
		"run --admin-token-file ":         ":0",
		"message enqueue --value-file ":   ":0",
		"cost --prices ":                  ":0",
		"parked list --output ":           "text\njson\n:4",
		"parked show ":                    ":4",
		"simulate --faults ":              "none\ndefault\nstorm\n:4",
		"mess":                            "message\tLooks at waiting messages, adds one, sets some aside\n:4",
		"run --lease-renew-interv":        "--lease-renew-interval\tbetween renewals, at most a third of lease-duration\n:4",
		"message enqueue --topic t --hea": "--header\theader as key=value; repeatable, in this order\n:4",
	} {
		got := c.run(append([]string{"__complete"}, strings.Split(line, " ")...)...)
		if got.code != exitDone || strings.TrimSpace(got.stdout) != want {
			t.Errorf("relay %s<tab>: exit %d, offers %q, want %q", line, got.code, got.stdout, want)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := c.run("completion", shell); got.code != exitDone || len(got.stdout) < 1000 {
			t.Errorf("completion %s: %+v", shell, got)
		}
	}
}
