package memtable

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// numbers draws texts that the service takes for numbers: signs, leading and
// trailing zeros, points and exponents, at most 19 digits, so that sums of two
// of a like magnitude stay within 38.
func numbers() *rapid.Generator[string] {
	return rapid.StringMatching(`-?0{0,2}[0-9]{1,12}(\.[0-9]{1,6}0?)?(e-?[0-9])?`)
}

func rat(t *rapid.T, text string) *big.Rat {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("%q is no number", text)
	}
	return r
}

func mustParse(t *rapid.T, text string) decimal {
	d, err := parseDecimal(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDecimalKeepsTheValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := numbers().Draw(t, "number")
		d := mustParse(t, text)
		if rat(t, d.String()).Cmp(rat(t, text)) != 0 {
			t.Fatalf("%s became %s", text, d)
		}
		if again := mustParse(t, d.String()); again != d || again.String() != d.String() {
			t.Fatalf("%s has two forms: %+v and %+v", text, d, again)
		}
	})
}

func TestDecimalArithmeticIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := numbers().Draw(t, "x"), numbers().Draw(t, "y")
		a, b := mustParse(t, x), mustParse(t, y)
		sum, err := a.add(b)
		if err != nil {
			t.Fatal(err)
		}
		if want := new(big.Rat).Add(rat(t, x), rat(t, y)); rat(t, sum.String()).Cmp(want) != 0 {
			t.Fatalf("%s + %s = %s, want %s", x, y, sum, want.FloatString(20))
		}
		order := rat(t, x).Cmp(rat(t, y))
		if got := a.compare(b); got < 0 != (order < 0) || got > 0 != (order > 0) {
			t.Fatalf("compare %s with %s: %d, want %d", x, y, got, order)
		}
		if got := strings.Compare(a.orderKey(), b.orderKey()); got != order {
			t.Fatalf("order keys of %s and %s: %d, want %d", x, y, got, order)
		}
		if zero, err := a.add(a.negated()); err != nil || zero != (decimal{}) {
			t.Fatalf("%s - %s = %+v, %v", x, x, zero, err)
		}
	})
}

func TestDecimalLimits(t *testing.T) {
	for text, want := range map[string]string{
		"9.9999999999999999999999999999999999999E+125": "99999999999999999999999999999999999999" + strings.Repeat("0", 88),
		"1E-130":  "0." + strings.Repeat("0", 129) + "1",
		"-1E-130": "-0." + strings.Repeat("0", 129) + "1",
		"0E9999":  "0",
	} {
		if d, err := parseDecimal(text); err != nil || d.String() != want {
			t.Errorf("%s became %s, %v", text, d, err)
		}
	}
	for _, text := range []string{"1E126", "1E-131", "1E99999999999999999999", "1.00000000000000000000000000000000000001"} {
		if d, err := parseDecimal(text); err == nil {
			t.Errorf("%s became %s", text, d)
		}
	}
	big, _ := parseDecimal("1E37")
	small, _ := parseDecimal("0.1")
	if sum, err := big.add(small); err == nil {
		t.Errorf("39 digits: %s", sum)
	}
}
