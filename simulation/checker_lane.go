package simulation

import (
	"slices"
	"time"

	"github.com/bucketbrigade/relay/outbox"
)

// lanePlace is a partition as one bucket sees it.
type lanePlace struct {
	bucket    int
	topic     string
	partition int32
}

// laneRows are the rows of a bucket that belong to one partition and are not
// delivered yet, ascending.
type laneRows struct{ undelivered []int64 }

func (l *laneRows) wait(sequence int64) { l.undelivered = insert(l.undelivered, sequence) }

// insert puts a number where it belongs among ascending ones.
func insert(numbers []int64, n int64) []int64 {
	i, _ := slices.BinarySearch(numbers, n)
	return slices.Insert(numbers, i, n)
}

// lane is where the rows of a message's bucket and partition are.
func (c *checker) lane(m commit) *laneRows {
	at := lanePlace{m.bucket, m.message.Topic, partitionOf(m.message)}
	if c.lanes[at] == nil {
		c.lanes[at] = &laneRows{}
	}
	return c.lanes[at]
}

// firstInLane: a row's first delivery comes behind those of all earlier rows of
// its bucket and partition that were committed before the process that delivered
// it first read it, as far as that shows: a letter is on another partition.
func (c *checker) firstInLane(i int, r BrokerRecord) {
	m := c.fleet.writers.committed[i]
	lane := c.lane(m)
	read, known := c.firstRead[readBy{r.Owner, rowName{m.bucket, m.sequence}}]
	for _, sequence := range lane.undelivered {
		if sequence >= m.sequence || !known || isLetter(r) || c.everAside[rowName{m.bucket, m.sequence}] {
			break
		}
		earlier := c.rows[rowName{m.bucket, sequence}]
		if c.fleet.writers.committed[earlier].at < read && c.together(earlier, i) {
			c.about(r.Owner, m.bucket).violated("I-31", "row %d of bucket %d passes row %d of the same partition", m.sequence, m.bucket, sequence)
			break
		}
	}
	lane.leave(m.sequence)
}

// readBy is a row as one process reads it.
type readBy struct {
	process string
	row     rowName
}

// readFirst notes that a process was shown rows by a read that it sent at an
// instant.
func (c *checker) readFirst(p *process, bucket int, rows []outbox.Row, at time.Duration) {
	for _, row := range rows {
		name := readBy{p.name, rowName{bucket, row.Sequence}}
		if _, known := c.firstRead[name]; !known {
			c.firstRead[name] = at
		}
	}
}

// partitionOf is where a message belongs: where its writer says, else where its
// key says as Java's client has it, else where its id says, so that a repeat lands
// beside the first copy.
func partitionOf(m outbox.Message) int32 {
	for _, t := range allTopics() {
		if t.name != m.Topic {
			continue
		}
		bytes := m.Key
		switch {
		case m.Partition != nil:
			return *m.Partition
		case m.Key == nil:
			bytes = m.ID[:]
		}
		return int32(outbox.Murmur2(bytes)&0x7fffffff) % int32(t.partitions)
	}
	return 0
}
