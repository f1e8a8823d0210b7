package simulation

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// words reads one line word by word. The first fault stays, with the word that it
// was found at; after it everything reads as zero.
type words struct {
	all  []string
	next int
	at   string
	err  error
}

func (w *words) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
		if i := w.next - 1; i >= 0 && i < len(w.all) {
			w.at = w.all[i]
		}
	}
}

// take reads the next word, which is what.
func (w *words) take(what string) string {
	if w.err != nil {
		return ""
	}
	w.next++
	if w.next > len(w.all) {
		w.fail("%s is missing", what)
		return ""
	}
	return w.all[w.next-1]
}

// peek is the next word, or empty.
func (w *words) peek() string {
	if w.err != nil || w.next >= len(w.all) {
		return ""
	}
	return w.all[w.next]
}

// has reads the phrase if it is next.
func (w *words) has(phrase string) bool {
	want := strings.Fields(phrase)
	if w.err != nil || len(w.all)-w.next < len(want) || !slices.Equal(w.all[w.next:w.next+len(want)], want) {
		return false
	}
	w.next += len(want)
	return true
}

// must reads the phrase.
func (w *words) must(phrase string) {
	for _, want := range strings.Fields(phrase) {
		if got := w.take(strconv.Quote(want)); got != want {
			w.fail("want %q here", want)
		}
	}
}

// end: nothing may follow.
func (w *words) end() {
	if w.err == nil && w.next < len(w.all) {
		w.next++
		w.fail("nothing more may follow")
	}
}

// rest reads all that is left.
func (w *words) rest(what string) []string {
	rest := []string{w.take(what)}
	for w.peek() != "" {
		rest = append(rest, w.take(what))
	}
	return rest
}

func (w *words) number(what string) int {
	text := w.take(what)
	n, err := strconv.Atoi(text)
	if err != nil {
		w.fail("%s is a number", what)
	}
	return n
}

// seed is any of 64 bits.
func (w *words) seed() uint64 {
	seed, err := strconv.ParseUint(w.take("the seed"), 10, 64)
	if err != nil {
		w.fail("the seed is a number, not negative")
	}
	return seed
}

func (w *words) rate(what string) float64 {
	text := w.take(what)
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n < 0 {
		w.fail("%s is a number, not negative", what)
	}
	return n
}

// duration is like 90s, 1m30s or 200ms.
func (w *words) duration(what string) time.Duration {
	text := w.take(what)
	d, err := time.ParseDuration(text)
	if err != nil {
		w.fail("%s is a duration like 90s or 200ms", what)
	}
	return d
}

// positive is a duration of more than nothing.
func (w *words) positive(what string) time.Duration {
	d := w.duration(what)
	if d <= 0 {
		w.fail("%s is more than nothing", what)
	}
	return d
}

// buckets are one, "3", or several that follow each other, "0-3".
func (w *words) buckets() []int {
	text := w.take("a bucket")
	first, last, several := strings.Cut(text, "-")
	if !several {
		last = first
	}
	from, err := strconv.Atoi(first)
	to, errTo := strconv.Atoi(last)
	if errors.Join(err, errTo) != nil || to < from {
		w.fail("a bucket is a number, several are like 0-3")
		return nil
	}
	var all []int
	for b := from; b <= to; b++ {
		all = append(all, b)
	}
	return all
}

// bucket is one.
func (w *words) bucket() int { return w.number("a bucket") }

// names are one or more names, "m1" or "m1..m5", up to a word of the grammar.
func (w *words) names(until []string) []string {
	var all []string
	for w.peek() != "" && !slices.Contains(until, w.peek()) {
		name := w.take("a message")
		first, last, several := strings.Cut(name, "..")
		if !several {
			all = append(all, name)
			continue
		}
		stem := strings.TrimRight(first, "0123456789")
		from, err := strconv.Atoi(strings.TrimPrefix(first, stem))
		to, errTo := strconv.Atoi(strings.TrimPrefix(last, stem))
		if errors.Join(err, errTo) != nil || to < from {
			w.fail("several messages are like m1..m5")
			return nil
		}
		for n := from; n <= to; n++ {
			all = append(all, stem+strconv.Itoa(n))
		}
	}
	if len(all) == 0 {
		w.take("a message")
	}
	return all
}

// oneOf reads one of the words.
func (w *words) oneOf(what string, words ...string) string {
	word := w.take(what)
	if !slices.Contains(words, word) {
		w.fail("%s is one of %s", what, strings.Join(words, ", "))
	}
	return word
}
