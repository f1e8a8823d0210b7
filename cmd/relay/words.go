package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// This file puts numbers, buckets, durations and texts of others into words.

// counted is a number and its noun: 1 key, 2 keys.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// have is a number of subjects with its verb.
func have(n int, noun string) string {
	if n == 1 {
		return counted(n, noun) + " has"
	}
	return counted(n, noun) + " have"
}

// limitText counts things of which there may be more.
func limitText(n int, isLimit bool, noun string) string {
	if isLimit {
		return fmt.Sprintf("%d or more %ss", n, noun)
	}
	return counted(n, noun)
}

// ending is that of a verb whose subject is one thing, or several.
func ending(n int, isLimit bool) string {
	if n == 1 && !isLimit {
		return "s"
	}
	return ""
}

// listed are texts, separated by commas; of many the first few.
func listed(texts []string, most int) string {
	if len(texts) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(texts[:most], ", "), len(texts)-most)
	}
	return strings.Join(texts, ", ")
}

// namedRuns is how many runs of buckets are named before a text says "and others".
const namedRuns = 6

// bucketsText names buckets: "bucket 5", "buckets 0-3, 7".
func bucketsText(buckets []int) string { return numberedText("bucket", buckets) }

// numberedText names what has a noun and numbers.
func numberedText(noun string, numbers []int) string {
	if len(numbers) == 1 {
		return fmt.Sprintf("%s %d", noun, numbers[0])
	}
	return noun + "s " + runsText(numbers)
}

// leasesText names the leases of buckets: "a lease of bucket 5", "leases of buckets 0-3, 7".
func leasesText(buckets []int) string {
	if len(buckets) == 1 {
		return "a lease of " + bucketsText(buckets)
	}
	return "leases of " + bucketsText(buckets)
}

// itOrThem stands for some buckets.
func itOrThem(buckets []int) string {
	if len(buckets) == 1 {
		return "it"
	}
	return "them"
}

// byNumber is for an advice about some buckets whose command takes one.
func byNumber(buckets []int) string {
	if len(buckets) == 1 {
		return ""
	}
	return ", each by its number"
}

// runsText is ascending numbers in few words: "0-3, 7".
func runsText(numbers []int) string {
	var runs []string
	for i := 0; i < len(numbers); {
		end := i
		for end+1 < len(numbers) && numbers[end+1] == numbers[end]+1 {
			end++
		}
		if len(runs) == namedRuns {
			return fmt.Sprintf("%s and %d more", strings.Join(runs, ", "), len(numbers)-i)
		}
		if end > i {
			runs = append(runs, fmt.Sprintf("%d-%d", numbers[i], numbers[end]))
		} else {
			runs = append(runs, fmt.Sprint(numbers[i]))
		}
		i = end + 1
	}
	return strings.Join(runs, ", ")
}

// ageText is a duration in its two largest units at most: 4m, 3h12m, 2d7h.
func ageText(d time.Duration) string {
	units := []struct {
		name string
		size time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}}
	d = max(d, 0)
	first := slices.IndexFunc(units, func(u struct {
		name string
		size time.Duration
	}) bool {
		return d >= u.size
	})
	if first < 0 {
		return "0s"
	}
	text := fmt.Sprintf("%d%s", d/units[first].size, units[first].name)
	if first+1 < len(units) {
		if rest := d % units[first].size / units[first+1].size; rest > 0 {
			text += fmt.Sprintf("%d%s", rest, units[first+1].name)
		}
	}
	return text
}

// momentText is a moment to the second, as it can be copied into a log's search.
func momentText(t time.Time) string { return t.UTC().Truncate(time.Second).Format(time.RFC3339) }

// unitsText is an amount of capacity; the least that is sold is half a unit.
func unitsText(units float64) string { return strconv.FormatFloat(units, 'f', 1, 64) }

// legible is a text of the table as a terminal may show it: quoted when something in it
// would not be seen, or would be obeyed.
func legible(text string) string {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}
