// Package mutants shows that the simulation would notice. Its tests break the
// relay in one place after another, as a slip of the pen could: a condition
// dropped, a check skipped, an order swapped, a class mistaken. Each mutant is
// built with an overlay of the go command, so that production code has no hook
// for it, and runs through the storm until an invariant of docs/invariants.md
// catches it: one that the mutant names, within the bound of the table. What the storm
// meets too rarely for that is shown by a scenario, which the mutant names. The code as
// it is runs along, and must not be caught.
//
// `make mutants` runs them all and prints a table: the seed that caught each, and
// by which invariant. One that does not compile, that makes no progress, or that
// fails otherwise is reported as such; it is not caught. MUTANTS=pattern picks
// some by their names. In `make test` it is only checked that the text of each is
// still there.
package mutants
