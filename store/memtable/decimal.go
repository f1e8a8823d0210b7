package memtable

import (
	"math/big"
	"strconv"
	"strings"
)

// Limits of the service's number type.
const (
	maxDigits   = 38   // significant digits
	maxExponent = 126  // of 0.d₁d₂… × 10^exponent: up to 9.99…E+125
	minExponent = -129 // down to 1E-130
)

// decimal is a number exactly as DynamoDB keeps one: ±0.d₁d₂d₃… × 10^exponent
// with at most 38 digits. Sequence numbers and ticks pass 2^53, so nothing
// here ever goes through a float.
//
// Invariant: digits begins and ends with a digit other than 0; zero has no
// digits, no exponent and no sign. Equal numbers are therefore equal structs.
type decimal struct {
	negative bool
	digits   string
	exponent int
}

// parseDecimal reads a number in the notation of the service's N type:
// optional sign, digits with an optional point, optional exponent. Numbers of
// more than 38 significant digits or outside the supported range are
// validation errors, as are texts that are no number.
func parseDecimal(text string) (decimal, error) {
	var d decimal
	rest := text
	if rest != "" && (rest[0] == '-' || rest[0] == '+') {
		d.negative = rest[0] == '-'
		rest = rest[1:]
	}
	mantissa, power, ok := splitExponent(rest)
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if !ok || whole+fraction == "" || !allDigits(whole) || !allDigits(fraction) {
		return decimal{}, invalid("The parameter cannot be converted to a numeric value: %s", text)
	}
	d.digits, d.exponent = whole+fraction, len(whole)+power
	d = d.normal()
	switch {
	case len(d.digits) > maxDigits:
		return decimal{}, invalid("Attempting to store more than 38 significant digits in a Number")
	case d.exponent > maxExponent:
		return decimal{}, invalid("Number overflow. Attempting to store a number with magnitude larger than supported range")
	case d.digits != "" && d.exponent < minExponent:
		return decimal{}, invalid("Number underflow. Attempting to store a number with magnitude smaller than supported range")
	}
	return d, nil
}

// isPlainInteger tells whether a text, as most are, is a whole number other than
// zero just as String writes it.
func isPlainInteger(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	return digits != "" && digits[0] != '0' && len(digits) <= maxDigits && allDigits(digits)
}

// splitExponent cuts "1.5e-3" into "1.5" and -3. Exponents of more than four
// digits are cut down to a value that is out of range anyway.
func splitExponent(text string) (mantissa string, power int, ok bool) {
	at := strings.IndexAny(text, "eE")
	if at < 0 {
		return text, 0, true
	}
	mantissa, text = text[:at], text[at+1:]
	sign := 1
	if text != "" && (text[0] == '-' || text[0] == '+') {
		if text[0] == '-' {
			sign = -1
		}
		text = text[1:]
	}
	if text == "" || !allDigits(text) {
		return "", 0, false
	}
	for _, c := range []byte(text) {
		if power = power*10 + int(c-'0'); power > 9999 {
			power = 9999
		}
	}
	return mantissa, sign * power, true
}

func allDigits(text string) bool {
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// normal restores the invariant of decimal.
func (d decimal) normal() decimal {
	trimmed := strings.TrimLeft(d.digits, "0")
	d.exponent -= len(d.digits) - len(trimmed)
	d.digits = strings.TrimRight(trimmed, "0")
	if d.digits == "" {
		return decimal{}
	}
	return d
}

// String is the service's own way to write the number: no exponent, no
// leading zeros but the one before a point, no trailing zeros behind it.
func (d decimal) String() string {
	var b strings.Builder
	if d.negative {
		b.WriteByte('-')
	}
	switch {
	case d.digits == "":
		b.WriteByte('0')
	case d.exponent <= 0:
		b.WriteString("0.")
		b.WriteString(strings.Repeat("0", -d.exponent))
		b.WriteString(d.digits)
	case d.exponent >= len(d.digits):
		b.WriteString(d.digits)
		b.WriteString(strings.Repeat("0", d.exponent-len(d.digits)))
	default:
		b.WriteString(d.digits[:d.exponent])
		b.WriteByte('.')
		b.WriteString(d.digits[d.exponent:])
	}
	return b.String()
}

// sign is -1, 0 or 1.
func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// compare is negative, zero or positive as d is less than, equal to or
// greater than e.
func (d decimal) compare(e decimal) int {
	if d.sign() != e.sign() {
		return d.sign() - e.sign()
	}
	order := d.exponent - e.exponent
	if order == 0 {
		order = strings.Compare(d.digits, e.digits)
	}
	return order * d.sign()
}

// orderKey is a text whose byte order is the order of the numbers; equal
// numbers have equal keys. It is how a number becomes part of a primary key.
func (d decimal) orderKey() string {
	if d.digits == "" {
		return "1"
	}
	biased := byte(d.exponent - minExponent) // 0 to 255
	key := append(make([]byte, 0, len(d.digits)+3), '2', biased)
	key = append(key, d.digits...)
	if !d.negative {
		return string(key)
	}
	key[0] = '0'
	for i := 1; i < len(key); i++ {
		key[i] = ^key[i]
	}
	return string(append(key, 0xff)) // a shorter negative number is the greater one
}

// add returns d + e, exactly, or the service's overflow error.
func (d decimal) add(e decimal) (decimal, error) {
	if x, whole := d.whole(); whole {
		if y, whole := e.whole(); whole {
			return parseDecimal(strconv.FormatInt(x+y, 10))
		}
	}
	a, b := d.scaled(), e.scaled()
	scale := min(d.scale(), e.scale())
	shift(a, d.scale()-scale)
	shift(b, e.scale()-scale)
	sum := a.Add(a, b)
	text := new(big.Int).Abs(sum).String()
	result := decimal{negative: sum.Sign() < 0, digits: text, exponent: len(text) + scale}.normal()
	if len(result.digits) > maxDigits {
		return decimal{}, invalid("Number overflow. Attempting to store a number with more than 38 significant digits")
	}
	return parseDecimal(result.String())
}

// whole is the number as an integer, if it is one of at most 18 digits.
func (d decimal) whole() (n int64, whole bool) {
	if d.exponent > 18 || d.scale() < 0 {
		return 0, false
	}
	for i := range d.exponent {
		n *= 10
		if i < len(d.digits) {
			n += int64(d.digits[i] - '0')
		}
	}
	if d.negative {
		n = -n
	}
	return n, true
}

// negated returns -d.
func (d decimal) negated() decimal {
	d.negative = !d.negative
	return d.normal()
}

// scale is the power of ten of the last digit.
func (d decimal) scale() int { return d.exponent - len(d.digits) }

func (d decimal) scaled() *big.Int {
	n := new(big.Int)
	if d.digits != "" {
		n.SetString(d.digits, 10)
	}
	if d.negative {
		n.Neg(n)
	}
	return n
}

func shift(n *big.Int, power int) {
	if power > 0 {
		n.Mul(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(power)), nil))
	}
}
