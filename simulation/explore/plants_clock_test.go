package explore

import (
	"time"

	"github.com/bucketbrigade/relay/store"
)

func noSkew(time.Duration) time.Duration { return 0 }

// onlyWall hides the monotonic clock.
func onlyWall(now store.Instant) store.Instant {
	now.Mono = now.Wall - epoch
	return now
}
