package fsm

// States of a bucket. Released and Lost are its ends.
const (
	Claiming  State = "claiming"
	Owned     State = "owned"
	Withheld  State = "withheld"
	Blocked   State = "blocked"
	Paused    State = "paused"
	Draining  State = "draining"
	Releasing State = "releasing"
	Released  State = "released"
	Lost      State = "lost"
)

// Events of a bucket.
const (
	Claimed  Event = "claimed"
	Withhold Event = "withhold"
	Confirm  Event = "confirm"
	Block    Event = "block"
	Unblock  Event = "unblock"
	Pause    Event = "pause"
	Resume   Event = "resume"
	Drain    Event = "drain"
	Release  Event = "release"
	Unlease  Event = "released"
	Lose     Event = "lose"
)

// BucketTable is the machine of a bucket, from Claiming.
func BucketTable() []Row {
	return []Row{
		{Claimed, []State{Claiming}, Owned, "the claim, or the keep that begins a tenure, was confirmed"},
		{Withhold, []State{Owned, Blocked}, Withheld, "local validity has lapsed, or our clock is behind the lease"},
		{Confirm, []State{Withheld}, Owned, "a keep was confirmed, and our clock has passed what was withheld"},
		{Block, []State{Owned}, Blocked, "a row cannot be read, or is rejected"},
		{Unblock, []State{Blocked}, Owned, "that row is out of the way"},
		{Pause, []State{Owned, Withheld, Blocked}, Paused, "an operator paused the bucket"},
		{Resume, []State{Paused}, Owned, "the pause has ended"},
		{Drain, []State{Claiming, Owned, Withheld, Blocked, Paused}, Draining, "the bucket is to be handed back"},
		{Release, []State{Draining}, Releasing, "nothing is in flight, and a release was sent"},
		{Unlease, []State{Releasing}, Released, "the release was confirmed"},
		{Lose, []State{Claiming, Owned, Withheld, Blocked, Paused, Draining, Releasing}, Lost, "the lease is another's or nobody's"},
	}
}
