package check_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/hashicorp/hcl/v2/hclparse"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// tool runs a program of the machine's, and skips the test where it is not installed.
func tool(t *testing.T, name string, args ...string) (output string, err error) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	var out bytes.Buffer
	command := exec.CommandContext(t.Context(), path, args...)
	command.Stdout, command.Stderr = &out, &out
	err = command.Run()
	return out.String(), err
}

// systemd takes the unit without a word: a directive that it does not know would be a
// protection that is not there.
func TestSystemdTakesTheUnit(t *testing.T) {
	unit, err := os.ReadFile("../systemd/relay.service")
	if err != nil {
		t.Fatal(err)
	}
	// The binary is not where a package would put it.
	runnable := strings.ReplaceAll(string(unit), "/usr/bin/relay", "/bin/true")
	path := filepath.Join(t.TempDir(), "relay.service")
	if err := os.WriteFile(path, []byte(runnable), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := tool(t, "systemd-analyze", "verify", "--man=no", path); err != nil || strings.Contains(out, "relay.service") {
		t.Errorf("%v\n%s", err, out)
	}
	// From 0, nothing exposed, to 100; what is left is that it may use the network.
	if out, err := tool(t, "systemd-analyze", "security", "--offline=true", "--threshold=20", path); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Compose takes the file, and both relays are there when they are asked for.
func TestComposeTakesTheFile(t *testing.T) {
	for profile, want := range map[string]string{
		"":       "dynamodb kafka",
		"relays": "dynamodb kafka relay-a relay-b table topic",
	} {
		options, err := cli.NewProjectOptions([]string{"../../compose.yaml"}, cli.WithProfiles([]string{profile}))
		if err != nil {
			t.Fatal(err)
		}
		project, err := options.LoadProject(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(project.ServiceNames(), " "); got != want {
			t.Errorf("profile %q has %s, want %s", profile, got, want)
		}
	}
}

func TestCloudFormationTakesTheTemplate(t *testing.T) {
	if out, err := tool(t, "cfn-lint", "../cloudformation/outbox.yaml"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestTerraformParsesTheModule(t *testing.T) {
	if _, diagnostics := hclparse.NewParser().ParseHCLFile("../terraform/main.tf"); diagnostics.HasErrors() {
		t.Error(diagnostics)
	}
	if out, err := tool(t, "terraform", "fmt", "-check", "-diff", "../terraform"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The image is built with a Go that go.mod takes, for an image cannot fetch another, and
// linked against the glibc of the Debian that it runs on.
func TestTheImageIsBuiltForWhatItRunsOn(t *testing.T) {
	file, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	module, err := modfile.Parse("go.mod", content, nil)
	if err != nil {
		t.Fatal(err)
	}
	builder := regexp.MustCompile(`FROM docker.io/library/golang:([0-9.]+)-(\w+) AS build`).FindStringSubmatch(string(file))
	base := regexp.MustCompile(`FROM gcr.io/distroless/base-debian(\d+):nonroot`).FindStringSubmatch(string(file))
	if builder == nil || base == nil {
		t.Fatal("the stages are others than this test knows")
	}
	if semver.Compare("v"+builder[1], "v"+module.Go.Version) < 0 {
		t.Errorf("the image has Go %s, go.mod wants %s", builder[1], module.Go.Version)
	}
	if release := map[string]string{"bookworm": "12", "trixie": "13"}[builder[2]]; release != base[1] {
		t.Errorf("built on Debian %s (%s), run on %s", builder[2], release, base[1])
	}
}
