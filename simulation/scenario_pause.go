package simulation

import "github.com/bucketbrigade/relay/store"

// pauser is who pauses.
const pauser = "ops@desk"

// readPauses reads "bucket 0-3 for 1m" and "topic audit in bucket 0-3 for 1m", without
// an end as "bucket 0-3" alone. The change of a bucket's pause rings for nobody: it
// stands where the owner looks in each round.
func readPauses(w *words) func(*stage) ([]change, error) {
	if w.has("bucket") {
		buckets, end := w.buckets(), readEnd(w)
		return func(t *stage) ([]change, error) {
			f := t.fleet
			var all []change
			for _, b := range buckets {
				all = append(all, change{noBell, store.Pause{
					Bucket: b, Seen: f.pausedUntil(b), Until: end(f), By: pauser, Reason: operatorReason,
				}})
			}
			return all, nil
		}
	}
	s := readSubject(w)
	if s.key != "" {
		w.fail("a bucket or a topic is paused, not a key")
	}
	end := readEnd(w)
	return func(t *stage) ([]change, error) {
		return t.changes(s, func(m bucketMarker) store.Request { return t.fleet.pauseTopic(m, end(t.fleet)) })
	}
}

// readEnd reads "for 1m", or nothing: there is no end.
func readEnd(w *words) func(*fleet) store.Ticks {
	if !w.has("for") {
		return func(*fleet) store.Ticks { return store.NoEnd }
	}
	d := w.positive("a while")
	return func(f *fleet) store.Ticks { return f.ticks().Add(d) }
}

// readResumes reads "bucket 0-3": their pauses end, as they stand on the leases.
func readResumes(w *words) func(*stage) ([]change, error) {
	w.must("bucket")
	buckets := w.buckets()
	return func(t *stage) ([]change, error) {
		var all []change
		for _, b := range buckets {
			all = append(all, change{noBell, store.Resume{Bucket: b, Seen: t.fleet.pausedUntil(b)}})
		}
		return all, nil
	}
}
