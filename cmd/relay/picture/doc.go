// Package picture is what a table shows at one instant: who is alive, who holds
// which bucket, what waits and since when, what is set aside or paused, and what of
// all that is wrong. It is what `relay status` and `relay top` print, and what
// other commands that look at the fleet begin with.
//
// It reads the table only, so that it works while every relay is down, and it judges
// by the table's own facts (protocol.md section 3): by what relays and leases say
// of themselves, and by the service's clock where the store says what that is. It
// writes nothing and prints nothing.
package picture
