package explore

import (
	"encoding/json"
	"os"
	"testing"
)

func TestScratch(t *testing.T) {
	var o Options
	if err := json.Unmarshal([]byte(os.Getenv("O")), &o); err != nil {
		t.Fatal(err)
	}
	sound(t, o)
}
