package outbox

import "time"

const (
	ticksPerSecond = 10_000_000
	// secondsToUnix is what lies between tick zero, 0001-01-01, and the Unix epoch.
	secondsToUnix = 62_135_596_800
	// MaxTicks is the last tick of the year 9999, the latest instant that the peer can represent.
	MaxTicks int64 = 3_155_378_975_999_999_999
)

// Ticks is t as the table stores it: whole units of 100 ns since 0001-01-01 UTC, rounded down. The
// Unix epoch is 621355968000000000. The years 1 to 9999 give 0 to MaxTicks; nothing else can be stored.
// Ticks exceed 2^53: they must never pass through a float.
func Ticks(t time.Time) int64 {
	return (t.Unix()+secondsToUnix)*ticksPerSecond + int64(t.Nanosecond()/100)
}

// FromTicks is the instant of a number of ticks, in UTC.
func FromTicks(ticks int64) time.Time {
	seconds, rest := ticks/ticksPerSecond, ticks%ticksPerSecond
	return time.Unix(seconds-secondsToUnix, rest*100).UTC()
}
