package simulation

// AppendedBy is the process and the number of its producer from which a record
// came that the event says was appended.
func AppendedBy(e Event) (process string, producer int, ok bool) {
	d, ok := e.Detail.(appended)
	return d.Process, d.Producer, ok
}
