package mutants_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// build compiles a package's tests with the mutant's files in place of the real ones. Only the packages that depend on them are compiled anew.
func (m mutant) build(ctx context.Context, dir, binary, target string) error {
	texts, err := m.mutated()
	if err != nil {
		return fmt.Errorf("MATCHES NOT: %w", err)
	}
	module, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	replace := map[string]string{}
	for file, text := range texts {
		path := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
		replace[filepath.Join(module, file)] = path
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, overlay, 0o600); err != nil {
		return err
	}
	// Without symbols for a debugger it links in half of the time.
	build := exec.CommandContext(ctx, "go", "test", "-c", "-ldflags=-s -w", "-overlay", path, "-o", binary, target)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("COMPILES NOT: %w\n%s", err, tail(out))
	}
	return nil
}
