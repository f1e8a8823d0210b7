package explore

import (
	"testing"

	"github.com/bucketbrigade/relay/actors/publisher"
	"github.com/bucketbrigade/relay/store"
)

// counted takes an outcome for an acknowledgement.
func counted(outcome publisher.Outcome) plant {
	return plant{outcome: func(results []publisher.Result) {
		for i := range results {
			if results[i].Outcome == outcome {
				results[i].Outcome = publisher.Acknowledged
			}
		}
	}}
}

// aKeyAroundAnother are three rows, the first and the last of one key.
func aKeyAroundAnother() []Row { return []Row{{Key: "a"}, {Key: "b"}, {Key: "a"}} }

func oneFault(kinds ...Fault) Options {
	return Options{Relays: 1, Prompt: true, Rows: aKeyAroundAnother(), Ticks: 4, Faults: 1, Kinds: kinds}
}

func deliveryPlantings() []planting {
	return []planting{
		{
			name: "failed is acknowledged", breaks: "only what the broker has is deleted", caught: "I-3",
			within: oneFault(Unsent), plant: counted(publisher.Failed),
		},
		{
			name: "unknown is acknowledged", breaks: "what may have been lost is not deleted", caught: "I-3",
			within: oneFault(Unheard), plant: counted(publisher.Unknown),
		},
		{
			name: "gaps are empty", breaks: "a gap that was filled meanwhile is read first", caught: "I-4",
			within: oneFault(Split),
			plant: plant{reply: func(_ store.Request, reply store.Reply) store.Reply {
				if _, probed := reply.Result.(store.Probed); probed {
					reply.Result = store.Probed{}
				}
				return reply
			}},
		},
		{
			name: "a gap is probed in part", breaks: "each number of a gap is asked for", caught: "I-4",
			within: Options{Relays: 1, Prompt: true, Rows: []Row{{Unused: true}, {Key: "b"}, {Key: "a"}}, Ticks: 4},
			plant: plant{request: func(r store.Request) store.Request {
				if probe, probes := r.(store.Probe); probes {
					probe.To = probe.From
					return probe
				}
				return r
			}},
		},
		{
			name: "a delete takes the next row along", breaks: "a row is deleted by its own key", caught: "I-3",
			within: oneFault(Held),
			plant: plant{request: func(r store.Request) store.Request {
				if d, deletes := r.(store.Delete); deletes && d.Sequences[len(d.Sequences)-1] < 3 {
					d.Sequences = append(d.Sequences[:len(d.Sequences):len(d.Sequences)], d.Sequences[len(d.Sequences)-1]+1)
					return d
				}
				return r
			}},
		},
		{
			name: "a fetch leaves its first row out", breaks: "a bucket is read from its head", caught: "I-10",
			within: oneFault(Held),
			plant: plant{reply: func(_ store.Request, reply store.Reply) store.Reply {
				if page, fetched := reply.Result.(store.Fetched); fetched && len(page.Rows) > 1 {
					page.Rows = page.Rows[1:]
					reply.Result = page
				}
				return reply
			}},
		},
	}
}

// Each planted bug is found by the search that is said to find it, and nothing is
// found without it.
func TestPlantedBugsOfDelivery(t *testing.T) { testPlantings(t, deliveryPlantings()) }
