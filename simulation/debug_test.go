package simulation_test

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/bucketbrigade/relay/simulation"
)

func TestDebug(t *testing.T) {
	text := os.Getenv("DEBUG_SEED")
	if text == "" {
		t.Skip()
	}
	n, _ := strconv.ParseUint(text, 10, 64)
	out, _ := os.Create("/tmp/trace.txt")
	w := bufio.NewWriter(out)
	o := stormOptions(n)
	o.Trace = w
	r := simulation.Run(o)
	w.Flush()
	fmt.Printf("%+v\n", r)
}
