//go:build unix

package kafka

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// stderr is the process's, and so is what guards it: two that turn it off at a
// time could leave it off.
var stderr sync.Mutex

// withoutStderr runs f while what the process writes to stderr goes nowhere. If
// that cannot be had, f runs all the same.
func withoutStderr(f func() error) error {
	stderr.Lock()
	defer stderr.Unlock()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return f()
	}
	defer null.Close()
	kept, err := unix.FcntlInt(uintptr(unix.Stderr), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return f()
	}
	defer unix.Close(kept)
	if err := unix.Dup2(int(null.Fd()), unix.Stderr); err != nil {
		return f()
	}
	defer func() { _ = unix.Dup2(kept, unix.Stderr) }()
	return f()
}
