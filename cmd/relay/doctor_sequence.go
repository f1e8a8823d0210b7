package main

import (
	"context"
	"fmt"

	"github.com/bucketbrigade/relay/cmd/relay/picture"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// sequences reads counters and rows.
type sequences struct {
	client   *store.Client
	settings *settings.Settings
}

// standing is how a bucket's counter stands to its rows.
type standing struct {
	bucket  int
	counter store.Counter
	last    int64 // the highest number of a row, waiting or set aside; 0: there is none
	odd     error // why a waiting row has no number; nil: each has one
}

// behind tells whether the counter will hand out the number of a row, or none.
func (s standing) behind() bool { return s.counter.Unreadable != nil || s.counter.Sequence < s.last }

// read finds how a bucket's counter stands, while writers and relays are at work.
// The order of the reads is what makes it true: a row that is set aside meanwhile
// goes from what is read first to what is read second, and a counter that is read
// last is at or beyond all rows that were there before, unless it is behind.
func (t sequences) read(ctx context.Context, bucket int) (standing, error) {
	found := standing{bucket: bucket}
	for before := ""; ; {
		last, err := picture.Ask[store.Last](ctx, t.client, store.ReadLast{Bucket: bucket, Before: before})
		if err != nil {
			return found, err
		}
		found.last = max(found.last, last.Sequence)
		if last.Unreadable != nil {
			found.odd = last.Unreadable
		}
		if before = last.Next; before == "" {
			break
		}
	}
	for after := ""; ; {
		page, err := picture.Ask[store.Last](ctx, t.client, store.ReadParkedNumbers{Bucket: bucket, After: after})
		if err != nil {
			return found, err
		}
		found.last = max(found.last, page.Sequence)
		if after = page.Next; after == "" {
			break
		}
	}
	var err error
	found.counter, err = picture.Ask[store.Counter](ctx, t.client, store.ReadCounter{Bucket: bucket})
	return found, err
}

// check checks one bucket alone.
func (t sequences) check(ctx context.Context, bucket int) ([]checkDocument, error) {
	found, err := t.read(ctx, bucket)
	if err != nil {
		return nil, err
	}
	return []checkDocument{t.judge(found)}, nil
}

// judge words what was found of one bucket.
func (t sequences) judge(found standing) checkDocument {
	check := checkDocument{ID: checkSequence, Status: statusOK, Subject: fmt.Sprintf("bucket %d", found.bucket)}
	if found.counter.Unreadable != nil {
		check.Status = statusFailure
		check.Found = found.counter.Unreadable.Error()
		check.Advice = fmt.Sprintf("set it by hand to a number of at least %d, and of at least every one that was ever handed out", found.last)
		return check
	}
	check.Found = fmt.Sprintf("the counter is at %d, and no row is there", found.counter.Sequence)
	if found.last > 0 {
		check.Found = fmt.Sprintf("the counter is at %d, the highest row is %d", found.counter.Sequence, found.last)
	}
	if found.behind() {
		check.Status = statusFailure
		check.Advice = fmt.Sprintf("raise the counter: relay doctor --table %s --repair-sequence --bucket %d",
			t.settings.Relay.Table, found.bucket)
	}
	return check
}

// repairSequence raises one bucket's counter.
type repairSequence struct {
	wanted  bool
	atLeast int
	consent consent
}

// repairPasses bounds how often the rows are read anew. One pass is enough unless
// a transaction commits late, with a number from before the counter was set back.
const repairPasses = 5

// run raises the counter to the highest row, and to what else is known to have
// been handed out, if it is lower, and reads again until that holds. Writers may
// reserve at any moment between its requests:
//
//   - before the reads or between them: a number is counted whether it is used yet
//     or not, since the counter is read last;
//   - between the reads and the update: the update finds a higher counter, and its
//     condition, not what was read, decides; when the writers have passed the rows
//     by themselves it is refused, and there is nothing left to raise;
//   - after the update: they get numbers beyond the rows.
//
// A number that was reserved under the low counter and is put later is refused by
// the row that has it, or takes a place that no row has.
func (r repairSequence) run(ctx context.Context, a *app, table sequences, bucket int) (doctorDocument, error) {
	found, err := table.read(ctx, bucket)
	if err != nil {
		return doctorDocument{}, err
	}
	target := func() int64 { return max(found.last, int64(r.atLeast)) }
	if found.counter.Unreadable != nil || found.counter.Sequence >= target() {
		return doctorDocument{Checks: []checkDocument{table.judge(found)}}, nil
	}
	began := found.counter.Sequence
	what := fmt.Sprintf("bucket %d of table %s: the counter is at %d, the highest row is %d: raise the counter to %d",
		bucket, table.settings.Relay.Table, began, found.last, target())
	if r.consent.dryRun {
		schema := table.settings.Schema()
		return doctorDocument{
			Checks: []checkDocument{r.unrepaired(table.judge(found))},
			Requests: []string{fmt.Sprintf("UpdateItem %s %s: SET %s = %d, if it is lower or missing",
				schema.SequenceKey(bucket), outbox.CounterSortKey, outbox.AttrSequence, target())},
		}, nil
	}
	if !r.consent.yes {
		if err := a.confirm(ctx, what); err != nil {
			return doctorDocument{}, err
		}
	}
	for range repairPasses {
		reply := table.client.Do(ctx, store.RaiseCounter{Bucket: bucket, To: target()})
		if reply.Class != store.Done && reply.Class != store.Refused {
			return doctorDocument{}, fmt.Errorf("bucket %d: raise the counter (to repeat the command does no harm): %w", bucket, reply.Err)
		}
		if found, err = table.read(ctx, bucket); err != nil {
			return doctorDocument{}, err
		}
		if found.counter.Unreadable != nil || found.counter.Sequence >= target() {
			break
		}
	}
	check := table.judge(found)
	if check.Status == statusOK {
		check.Found += fmt.Sprintf("; the counter was at %d before", began)
	}
	return doctorDocument{Checks: []checkDocument{check}}, nil
}

// unrepaired is a check that a dry run leaves as it was, behind a number that only
// its user knows of, perhaps.
func (r repairSequence) unrepaired(check checkDocument) checkDocument {
	check.Status, check.Advice = statusFailure, "nothing was changed: this was a dry run"
	return check
}
