package publisher

// budget is the byte budget over all buckets. Half of it is cut into guaranteed
// shares; what a bucket has outstanding above its share is taken from the common
// half. So a bucket whose partition is dead may hold the common half for hours
// and still takes nothing of another one's share.
type budget struct {
	share  int // guaranteed for each bucket
	common int // for all of them
	// Invariant: used is the sum over the buckets of what is above the share.
	used int
}

func newBudget(maxBytes, buckets int) budget {
	share := maxBytes / 2 / buckets
	return budget{share: share, common: maxBytes - share*buckets}
}

func (g *budget) above(bytes int) int { return max(0, bytes-g.share) }

// admits tells whether a bucket with that much outstanding may add n bytes. With
// nothing outstanding it always may, so that no row is too large to ever go. That may
// take more than the common half, which is no reason to keep another one from its share.
func (g *budget) admits(outstanding, n int) bool {
	more := g.above(outstanding+n) - g.above(outstanding)
	return outstanding == 0 || more == 0 || g.used+more <= g.common
}

// take moves a bucket's outstanding bytes by n, which is negative when a record
// has come back.
func (g *budget) take(b *bucket, n int) {
	g.used += g.above(b.bytes+n) - g.above(b.bytes)
	b.bytes += n
}
