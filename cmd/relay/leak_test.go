package main

import (
	"testing"

	"go.uber.org/goleak"
)

// Whatever a command starts has ended when it returns.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
