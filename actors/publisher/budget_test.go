package publisher

import "testing"

// Whatever others have outstanding, a bucket may have its share, and a row of any size
// when it has nothing else.
func TestNobodyIsKeptFromItsShare(t *testing.T) {
	for _, large := range []int{0, 1000, 400_000} {
		g := newBudget(minMaxBytes, 8)
		for number := range 7 {
			if b := (&bucket{number: number}); large > 0 {
				g.take(b, large)
			}
		}
		b := &bucket{number: 7}
		for b.bytes+1000 <= g.share {
			if !g.admits(b.bytes, 1000) {
				t.Fatalf("seven others have a row of %d bytes: no room after %d bytes of a share of %d", large, b.bytes, g.share)
			}
			g.take(b, 1000)
		}
		if !g.admits(0, large) {
			t.Errorf("a row of %d bytes can never go", large)
		}
	}
}
