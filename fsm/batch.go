package fsm

// States of a batch. Removed is its end.
const (
	Fetching   State = "fetching"
	Probing    State = "probing"
	Publishing State = "publishing"
	Deleting   State = "deleting"
	Moving     State = "moving"
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
	SetAside  Event = "set_aside"
	Moved     Event = "moved"
	Condemn   Event = "condemn"
	Marked    Event = "marked"
	Letter    Event = "letter"
	Clear     Event = "clear"
	Emptied   Event = "emptied"
	Advance   Event = "advance"
	Fail      Event = "fail"
	Retry     Event = "retry"
	Drop      Event = "drop"
)

// BatchTable is the machine of a batch, from Fetching.
func BatchTable() []Row {
	return []Row{
		{Fetched, []State{Fetching}, Probing, "rows were read"},
		{Empty, []State{Fetching}, Removed, "there is no row"},
		{Probed, []State{Probing}, Publishing, "no gap before the rows to publish holds a message"},
		{Filled, []State{Probing}, Fetching, "a message has appeared in a gap before the first row"},
		{SetAside, []State{Probing}, Moving, "rows are of keys or topics that are set aside"},
		{Moved, []State{Moving}, Publishing, "those rows are moved, and others are left to publish"},
		{Published, []State{Publishing}, Deleting, "at least the first row was acknowledged"},
		{Letter, []State{Probing, Publishing, Deleting}, Publishing, "the first row is rejected for good, and goes to the dead-letter topic"},
		{Condemn, []State{Probing, Publishing, Deleting}, Moving, "the first row is rejected for good: its key is set aside, or its retry ends"},
		{Marked, []State{Moving}, Fetching, "the key is set aside, and its rows are to be moved"},
		{Deleted, []State{Deleting}, Removed, "the acknowledged rows are deleted, and no row is left"},
		{Clear, []State{Fetching, Deleting}, Moving, "no row that was set aside is left of the key"},
		{Emptied, []State{Moving}, Removed, "nothing is left to do"},
		{Advance, []State{Deleting, Moving}, Probing, "the rows behind the ninth gap are next"},
		{Fail, []State{Fetching, Probing, Publishing, Deleting, Moving}, BackingOff, "something failed, and rows remain"},
		{Retry, []State{BackingOff}, Fetching, "the pause is over"},
		{Drop, []State{Fetching, Probing, Publishing, Deleting, Moving, BackingOff}, Removed, "the bucket drains or may not send; what remains stays in the table"},
	}
}
