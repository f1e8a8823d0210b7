package settings

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Value fills one field from text. Its error says what is wrong with the text
// without repeating it; the field is unchanged then. String is the field as it
// would be written; Type is what --help shows in place of a value.
//
// It has the methods of a pflag.Value.
type Value interface {
	Set(text string) error
	String() string
	Type() string
}

// parsed is a Value made of a field and the two directions of its text.
type parsed[T any] struct {
	field  *T
	kind   string
	parse  func(string) (T, error)
	format func(T) string
}

func (p parsed[T]) Set(text string) error {
	v, err := p.parse(text)
	if err == nil {
		*p.field = v
	}
	return err
}

func (p parsed[T]) String() string { return p.format(*p.field) }
func (p parsed[T]) Type() string   { return p.kind }

func asIs(s string) string { return s }

// Text fills a string that must not be empty, since an empty one would silently
// mean the default.
func Text(field *string) Value {
	return parsed[string]{field, "text", func(text string) (string, error) {
		if text == "" {
			return "", errors.New("must not be empty")
		}
		return text, nil
	}, asIs}
}

// File fills the name of a file, which must not be empty.
func File(field *string) Value {
	named := Text(field).(parsed[string])
	named.kind = fileType
	return named
}

const fileType = "file"

// OptionalText fills a string that may be empty.
func OptionalText(field *string) Value {
	return parsed[string]{field, "text", func(text string) (string, error) { return text, nil }, asIs}
}

// Topic fills the name of a topic that Kafka can have.
func Topic(field *string) Value {
	return parsed[string]{field, "text", func(text string) (string, error) {
		const most = 249
		strange := func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
		}
		if text == "" || text == "." || text == ".." || len(text) > most || strings.ContainsFunc(text, strange) {
			return "", fmt.Errorf("is no name that a topic can have: 1 to %d characters of a-z, A-Z, 0-9, \".\", \"_\" and \"-\", and not \".\" or \"..\"", most)
		}
		return text, nil
	}, asIs}
}

// Count fills a whole number of 1 or more.
func Count(field *int) Value { return whole(field, 1) }

// Index fills a whole number of 0 or more.
func Index(field *int) Value { return whole(field, 0) }

func whole(field *int, least int) Value {
	return parsed[int]{field, "number", func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		switch {
		case err == nil && n > math.MaxInt32, errors.Is(err, strconv.ErrRange) && !strings.HasPrefix(text, "-"):
			return 0, fmt.Errorf("must be at most %d", math.MaxInt32)
		case err != nil || n < least:
			return 0, fmt.Errorf("must be a whole number, %d or more", least)
		}
		return n, nil
	}, strconv.Itoa}
}

// Sequence fills the number of a row, 1 or more; the leading zeros of a sort key do
// no harm.
func Sequence(field *int64) Value {
	return parsed[int64]{field, "number", ParseSequence, func(n int64) string { return strconv.FormatInt(n, 10) }}
}

// ParseSequence is the number of a row that a text names.
func ParseSequence(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) && !strings.HasPrefix(text, "-"):
		return 0, fmt.Errorf("must be at most %d, the highest number of a row", int64(math.MaxInt64))
	case err != nil || n < 1:
		return 0, errors.New("must be the number of a row, 1 or more")
	}
	return n, nil
}

// Number fills a positive number, whole or not, up to a limit.
func Number(field *float64, most float64) Value {
	return number(field, fmt.Sprintf("must be a number above 0, at most %v", most),
		func(n float64) bool { return n > 0 && n <= most })
}

// NumberFromZero fills a number, whole or not, from 0 to a limit.
func NumberFromZero(field *float64, most float64) Value {
	return number(field, fmt.Sprintf("must be a number from 0 to %v", most),
		func(n float64) bool { return n >= 0 && n <= most })
}

func number(field *float64, fault string, fits func(float64) bool) Value {
	return parsed[float64]{field, "number", func(text string) (float64, error) {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !fits(n) {
			return 0, errors.New(fault)
		}
		return math.Abs(n), nil // no negative zero
	}, func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }}
}

// Duration fills a positive duration, written with its unit.
func Duration(field *time.Duration) Value {
	return parsed[time.Duration]{field, "duration", func(text string) (time.Duration, error) {
		if _, err := strconv.ParseFloat(text, 64); err == nil {
			return 0, fmt.Errorf("needs a unit, such as %ss", strings.TrimLeft(text, "+-"))
		}
		d, err := time.ParseDuration(text)
		switch {
		case err != nil:
			return 0, errors.New("must be a duration, such as 500ms, 30s or 1m30s")
		case d <= 0:
			return 0, errors.New("must be positive")
		}
		return d, nil
	}, formatDuration}
}

// formatDuration leaves out the zero parts that time.Duration would write: 1m,
// not 1m0s; and all of one that is not set.
func formatDuration(d time.Duration) string {
	if d == 0 {
		return "" // it is not set
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// sizeUnits, largest first, so that a size is written in the largest that
// divides it.
var sizeUnits = []struct {
	name  string
	bytes int
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1}}

// Size fills a positive number of bytes: 8MiB, 64KB or 1048576, below 2 GiB.
func Size(field *int) Value {
	return parsed[int]{field, "size", parseSize, formatSize}
}

func parseSize(text string) (int, error) {
	number, unit := text, 1
	for _, u := range sizeUnits {
		if rest, found := strings.CutSuffix(text, u.name); found {
			number, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > math.MaxInt32/unit {
		return 0, errors.New("must be a size of at least 1 byte and below 2GiB, such as 8MiB or 500KB")
	}
	return n * unit, nil
}

func formatSize(bytes int) string {
	for _, u := range sizeUnits {
		if bytes != 0 && bytes%u.bytes == 0 {
			return strconv.Itoa(bytes/u.bytes) + u.name
		}
	}
	return strconv.Itoa(bytes)
}

// chosen is a Value that is one of a few texts.
type chosen struct {
	Value
	choices []string
}

// Switch fills a truth; as a flag, its name alone turns it on.
func Switch(field *bool) Value {
	return chosen{parsed[bool]{field, switchType, func(text string) (bool, error) {
		switch strings.ToLower(text) {
		case "on", "true", "yes", "1":
			return true, nil
		case "off", "false", "no", "0":
			return false, nil
		}
		return false, errors.New("must be on or off")
	}, func(on bool) string {
		if on {
			return "on"
		}
		return "off"
	}}, []string{"on", "off"}}
}

const switchType = "on|off"

// Choice fills one of the choices. Later are names that other versions know:
// they are refused with that reason, rather than accepted without effect.
func Choice[T ~string](field *T, choices []T, later ...string) Value {
	names := make([]string, len(choices))
	for i, c := range choices {
		names[i] = string(c)
	}
	list := strings.Join(names, ", ")
	return chosen{parsed[T]{field, "name", func(text string) (T, error) {
		switch {
		case slices.Contains(later, text):
			return "", fmt.Errorf("is not in this version, which has: %s", list)
		case !slices.Contains(names, text):
			return "", fmt.Errorf("must be one of: %s", list)
		}
		return T(text), nil
	}, func(t T) string { return string(t) }}, names}
}

// List fills texts that are separated by commas; blanks around them are left
// out, and none may be empty.
func List(field *[]string) Value {
	return parsed[[]string]{field, "list", func(text string) ([]string, error) {
		items := strings.Split(text, ",")
		for i := range items {
			items[i] = strings.TrimSpace(items[i])
		}
		if slices.Contains(items, "") {
			return nil, errors.New("must be names separated by commas, none of them empty")
		}
		return items, nil
	}, func(items []string) string { return strings.Join(items, ",") }}
}

// Texts appends each text that it is given; for arguments that may be repeated.
func Texts(field *[]string) Value {
	return parsed[[]string]{field, "text", func(text string) ([]string, error) {
		return append(slices.Clone(*field), text), nil
	}, func(items []string) string { return strings.Join(items, ",") }}
}

// URL fills an http or https address. Credentials in it are refused: they come
// from the SDK's chain, and an address is logged.
func URL(field *string) Value {
	return parsed[string]{field, "url", func(text string) (string, error) {
		u, err := url.Parse(text)
		switch {
		case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
			return "", errors.New("must be an address such as http://localhost:8000")
		case u.User != nil:
			return "", errors.New("must not contain credentials, which come from the SDK's chain")
		}
		return text, nil
	}, asIs}
}

// Address fills a host and port to listen on, such as 127.0.0.1:9464, or AdminOff.
// An empty host means all of the machine's.
func Address(field *string) Value {
	return parsed[string]{field, "address", func(text string) (string, error) {
		if text == AdminOff {
			return text, nil
		}
		_, port, err := net.SplitHostPort(text)
		if err != nil {
			return "", errors.New("must be host:port, such as 127.0.0.1:9464, or " + AdminOff)
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
			return "", errors.New("its port must be a number from 0 to 65535")
		}
		return text, nil
	}, asIs}
}

// Account fills the number of an AWS account, 12 digits; leading zeros count.
func Account(field *string) Value {
	return parsed[string]{field, "number", func(text string) (string, error) {
		if len(text) != 12 || strings.Trim(text, "0123456789") != "" {
			return "", errors.New("must be the 12 digits of an AWS account")
		}
		return text, nil
	}, asIs}
}
