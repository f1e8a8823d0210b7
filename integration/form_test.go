package integration

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The documented forms of the items that outlive the messages (protocol, section
// 1), for the default key names and prefix. They are written out here, and not
// taken from package outbox, whose constants are what is to be checked.
const (
	sequencePartition     = `OUTBOX#SEQUENCE#(\d+)`
	coordinationPartition = `OUTBOX#COORDINATION`
	parkedPartition       = `OUTBOX#PARKED#\d+`
)

// form is what one kind of item looks like. Attributes have their DynamoDB type,
// and a question mark when they may be absent.
type form struct {
	kind       string
	keys       *regexp.Regexp // of the partition key, a blank, and the sort key; captures the name
	attributes map[string]string
}

func forms() []form {
	return []form{
		{"sequence", keyForm(sequencePartition, `SEQUENCE`), map[string]string{"Sequence": "N"}},
		{"lease", keyForm(coordinationPartition, `LEASE#(\d{10})`), map[string]string{
			"Owner": "S?", "ExpiresAtUtc": "N", "Incarnation": "S?", "Claim": "N?", "Attention": "N?"}},
		{"relay", keyForm(coordinationPartition, `RELAY#([\x20-\x7e]{1,128})`), map[string]string{
			"LastSeenUtc": "N", "StoppedAtUtc": "N?", "Incarnation": "S?", "Mode": "S?"}},
		{"key set aside", keyForm(parkedPartition, `KEY#([0-9a-f]{32})`), map[string]string{
			"Topic": "S", "Reason": "S", "Attempts": "N", "ParkedAtUtc": "N", "RetryAtUtc": "N?"}},
	}
}

// parkedRow are the keys of a row that was set aside; its attributes are a message's.
var parkedRow = keyForm(parkedPartition, `ROW#[0-9a-f]{32}#\d{19}`)

func keyForm(partition, sort string) *regexp.Regexp {
	return regexp.MustCompile("^" + partition + " " + sort + "$")
}

// contents are the values whose form the type alone does not say.
var contents = map[string]*regexp.Regexp{
	"Incarnation": regexp.MustCompile(`^\d{19}-[0-9a-f]{8}$`),
	"Mode":        regexp.MustCompile(`^ordered$`),
	"Sequence":    regexp.MustCompile(`^[1-9]\d*$`),
	"Claim":       regexp.MustCompile(`^[1-9]\d*$`),
	// Ticks of the years 2016 to 2079.
	"ExpiresAtUtc": regexp.MustCompile(`^6[345]\d{16}$`),
	"LastSeenUtc":  regexp.MustCompile(`^6[345]\d{16}$`),
	"StoppedAtUtc": regexp.MustCompile(`^6[345]\d{16}$`),
}

// survey is what a table holds that is in the documented form.
type survey struct {
	sequences map[int]int64     // by bucket: the last number handed out
	leases    map[int]string    // by bucket: the owner, empty for none
	relays    map[string]string // by id: when it stopped, in ticks; empty when it has not
	messages  int
	parked    int // rows set aside
	problems  []string
}

func (s *survey) String() string {
	return fmt.Sprintf("%d messages, %d set aside, %d sequences, %d leases, relays %v, %d items in another form",
		s.messages, s.parked, len(s.sequences), len(s.leases), slices.Sorted(maps.Keys(s.relays)), len(s.problems))
}

// inspect sorts the items of a whole table by their kind. Every item but
// messages, waiting or set aside, must have one of the forms, to the last attribute.
func inspect(items []map[string]types.AttributeValue) survey {
	s := survey{sequences: map[int]int64{}, leases: map[int]string{}, relays: map[string]string{}}
	for _, item := range items {
		keys := textOf(item["PK"]) + " " + textOf(item["SK"])
		if strings.HasPrefix(keys, "OUTBOX#MESSAGES#") {
			s.messages++
			continue
		}
		if parkedRow.MatchString(keys) {
			s.parked++
			continue
		}
		at := slices.IndexFunc(forms(), func(f form) bool { return f.keys.MatchString(keys) })
		if at < 0 {
			s.problems = append(s.problems, keys+": no item has such keys")
			continue
		}
		f := forms()[at]
		if problem := f.fits(item); problem != "" {
			s.problems = append(s.problems, fmt.Sprintf("%s (%s): %s", keys, f.kind, problem))
		}
		s.note(f.kind, f.keys.FindStringSubmatch(keys)[1], item)
	}
	return s
}

func (s *survey) note(kind, name string, item map[string]types.AttributeValue) {
	bucket, _ := strconv.Atoi(name)
	switch kind {
	case "sequence":
		s.sequences[bucket], _ = strconv.ParseInt(textOf(item["Sequence"]), 10, 64)
	case "lease":
		s.leases[bucket] = textOf(item["Owner"])
	case "relay":
		s.relays[name] = textOf(item["StoppedAtUtc"])
	}
}

// fits says what is wrong with the item's attributes; empty: nothing.
func (f form) fits(item map[string]types.AttributeValue) string {
	for _, name := range slices.Sorted(maps.Keys(item)) {
		if name == "PK" || name == "SK" {
			continue
		}
		want, known := f.attributes[name]
		got := kindOf(item[name])
		switch {
		case !known:
			return "has " + name
		case got != strings.TrimSuffix(want, "?"):
			return fmt.Sprintf("%s is %s, not %s", name, got, want)
		case contents[name] != nil && !contents[name].MatchString(textOf(item[name])):
			return fmt.Sprintf("%s is %s", name, textOf(item[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.attributes)) {
		if item[name] == nil && !strings.HasSuffix(f.attributes[name], "?") {
			return "has no " + name
		}
	}
	return ""
}

// kindOf is the letter of an attribute's type.
func kindOf(v types.AttributeValue) string {
	switch v.(type) {
	case *types.AttributeValueMemberS:
		return "S"
	case *types.AttributeValueMemberN:
		return "N"
	default:
		return fmt.Sprintf("%T", v)
	}
}

// textOf is a string or a number as text; empty for what is neither.
func textOf(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return cmp.Or(v.Value, "0")
	default:
		return ""
	}
}
