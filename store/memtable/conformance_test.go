package memtable_test

import (
	"testing"

	"github.com/bucketbrigade/relay/store/memtable"
	"github.com/bucketbrigade/relay/store/storetest"
)

// The in-memory table keeps the same promises as a real emulator, which runs
// this suite in package integration.
func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Client { return memtable.New(memtable.Options{}) })
}
