//go:build !unix

package kafka

// withoutStderr runs f; what it writes to stderr is seen.
func withoutStderr(f func() error) error { return f() }
