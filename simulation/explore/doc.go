// Package explore tries everything that can happen to a small fleet, where the
// random runs of package simulation try what is likely.
//
// # Method
//
// A state is a value: the table, the actors of each process with their timers and
// clocks, the requests on their way, and what may still go wrong. The actors are the
// production ones, run through actors.Runtime and a protoactor context of ours, so
// that a process is a struct which can be copied and hashed by reflection. The
// search goes depth first from the beginning: in each state it takes a copy for each
// choice of the environment, lets that happen, and runs the process that it concerns
// until it waits. A state whose hash (128 bits of SHA-256) was seen before is not
// looked at again. Since each choice uses up time, budget or a request, the states
// form no circle, and the search ends by itself.
//
// The table is package store over store/memtable. What a request does to a table is
// computed once for each pair of the two, and looked up from then on. It remembers the
// transactions that it has applied by their tokens.
//
// The choices are:
//
//   - which request on its way is applied next, and answered;
//   - as faults, of which Options.Faults bounds the number: a request that gets no
//     answer, and lands at any time or never; one that is repeated after it was
//     applied; one that is throttled; one that arrives, or is answered, a tick later; a
//     crash; a stall; a clock that is set within the allowed skew; a fetch that is read
//     in two parts; a delete that is processed in part; a batch that is not appended, in
//     part or as a whole, comes back late, or unknown and is appended at any time; a
//     transaction that is applied, and seen in parts for less than a LeaseRenewInterval,
//     each set of its items last; a panic of a bucket's actor, after which a fresh one
//     follows in the same process;
//   - the start of a relay, with its clock anywhere within the skew, a stop, a new
//     start under the same id, a commit;
//   - what an operator does about rows that are set aside, bounded by Options.Acts, and,
//     as a step of its own, that it rings; that the broker takes what it rejected;
//   - that a tick goes by, once nothing on its way must arrive before.
//
// What is checked in each state are I-1, I-3 to I-7, I-9, I-20, I-24, I-37 and I-38 of
// docs/invariants.md, from outside: by the table, by what a batch holds, and by what
// each relay says that it believes of its leases. Where nothing is left to choose,
// nothing goes wrong any more, and after a lease and some rounds one relay must work
// on each bucket, who was to stop must have ended, no write may be refused (I-1, I-10,
// I-12), and all that was committed must be delivered and gone, or set aside under a
// marker; no marker of a key may be left without rows, and no retry that was asked for.
// Then all that is set aside is retried, and the table must be empty.
//
// A Violation has its way in numbered lines, and, for leases, as a scenario that the
// simulation plays.
//
// # What is exhaustive, and what is not
//
// Within its bounds the search sees each order of requests and faults, at the grain of
// a tick, which is half of the allowed skew. It does not choose among the messages
// inside a process: its actors take them in the order of their sending, and its timers
// fire before answers of the same tick. Processes meet in the table and at the broker
// only, and what happens within one changes nothing for others until it sends a
// request; so all interleavings of processes are seen, while those of actors within
// one are left to the random runs. An answer arrives at the instant at which its
// request is applied, unless it is slow: until then nothing but its own process could
// tell the difference.
//
// The publisher is played by the world, after its contract: a batch is answered once,
// and what was given up may still be appended; behind a row that is rejected none of
// its batch is appended. Jitter is none. There is no clock guard
// (answers say no date), no fault of the network below a request, and no page with a
// next one. An operator's requests are never lost, and its clock only counts: of what it
// stamps nothing but equality matters. Looks for messages are answered at once, and so are requests for
// coordination where Options.Prompt says so.
//
// Two coincidences are left out, since it takes two clocks that agree to 100 ns: that
// clocks differ by just MaxClockSkew, and that two processes write the same expiry.
// TestTies shows what they would do.
//
// Nothing is made of symmetry. With one bucket two relays are no mirror images: the
// plan gives the share to the lower id, so both orders of starting are tried. What is
// made of equal states is that tokens and numbers of timers are written relative to the
// latest, and that what no actor will read again is left out; TestBlanks goes on from
// each pair of states that are taken for one, and finds them alike.
package explore
