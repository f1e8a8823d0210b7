package explore

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"
)

func TestTry(t *testing.T) {
	var o Options
	if err := json.Unmarshal([]byte(os.Getenv("TRY")), &o); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	r := Search(o)
	fmt.Printf("%s: states %d steps %d ends %d healed %d depth %d complete %v: %.1fs\n", os.Getenv("TRY"), r.States, r.Steps, r.Ends, r.Healed, r.Depth, r.Complete, time.Since(began).Seconds())
	if r.Violation != nil {
		t.Fatal(r.Violation)
	}
}
