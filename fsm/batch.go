package fsm

// States of a batch. Removed is its end.
const (
	Fetching   State = "fetching"
	Probing    State = "probing"
	Publishing State = "publishing"
	Deleting   State = "deleting"
	BackingOff State = "backing_off"
	Removed    State = "removed"
)

// Events of a batch.
const (
	Fetched   Event = "fetched"
	Empty     Event = "empty"
	Probed    Event = "probed"
	Filled    Event = "filled"
	Published Event = "published"
	Deleted   Event = "deleted"
	Advance   Event = "advance"
	Fail      Event = "fail"
	Retry     Event = "retry"
	Drop      Event = "drop"
)

// BatchTable is the machine of a batch, from Fetching.
func BatchTable() []Row {
	return []Row{
		{Fetched, []State{Fetching}, Probing, "rows were read"},
		{Empty, []State{Fetching}, Removed, "the bucket has no row"},
		{Probed, []State{Probing}, Publishing, "no gap before the rows to publish holds a message"},
		{Filled, []State{Probing}, Fetching, "a message has appeared in a gap before the first row"},
		{Published, []State{Publishing}, Deleting, "at least the first row was acknowledged"},
		{Deleted, []State{Deleting}, Removed, "the acknowledged rows are deleted, and no row is left"},
		{Advance, []State{Deleting}, Probing, "the rows behind the ninth gap are next"},
		{Fail, []State{Fetching, Probing, Publishing, Deleting}, BackingOff, "something failed, and rows remain"},
		{Retry, []State{BackingOff}, Fetching, "the pause is over"},
		{Drop, []State{Fetching, Probing, Publishing, Deleting, BackingOff}, Removed, "the bucket drains or may not send; what remains stays in the table"},
	}
}
