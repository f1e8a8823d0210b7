package outbox_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/bucketbrigade/relay/outbox"
)

// Sizes by the rules of DynamoDB's documentation; the attribute's name, "ab", is two bytes of each.
func TestItemSizeFollowsTheDocumentedRules(t *testing.T) {
	for name, test := range map[string]struct {
		value types.AttributeValue
		want  int
	}{
		"text counts its UTF-8 bytes":      {text("aé€"), 1 + 2 + 3},
		"empty text is nothing":            {text(""), 0},
		"binary counts its bytes":          {binary([]byte{0, 1, 2}), 3},
		"zero":                             {number("0"), 1},
		"one digit":                        {number("7"), 2},
		"two digits":                       {number("42"), 2},
		"three digits":                     {number("123"), 3},
		"zeros at the end do not count":    {number("1200000"), 2},
		"zeros at the front do not count":  {number("0.00012"), 2},
		"zeros within count":               {number("10001"), 4},
		"sign and point do not count":      {number("-12.34"), 3},
		"the exponent does not count":      {number("1.2E+125"), 2},
		"a time in ticks":                  {number("638000000000000001"), 10},
		"38 digits":                        {number("99999999999999999999999999999999999999"), 20},
		"a truth":                          {&types.AttributeValueMemberBOOL{Value: true}, 1},
		"a null":                           {&types.AttributeValueMemberNULL{Value: true}, 1},
		"a set of text":                    {&types.AttributeValueMemberSS{Value: []string{"a", "bc"}}, 3},
		"a set of numbers":                 {&types.AttributeValueMemberNS{Value: []string{"1", "123"}}, 5},
		"a set of binary":                  {&types.AttributeValueMemberBS{Value: [][]byte{{1}, {2, 3}}}, 3},
		"an empty list":                    {&types.AttributeValueMemberL{}, 3},
		"a list, one byte an element":      {&types.AttributeValueMemberL{Value: []types.AttributeValue{text("a"), number("1")}}, 3 + 2 + 1 + 2},
		"an empty map":                     {&types.AttributeValueMemberM{}, 3},
		"a map, one byte an element":       {&types.AttributeValueMemberM{Value: item{"k": text("v"), "l": text("")}}, 3 + 2 + 2 + 1},
		"what is nested counts like above": {&types.AttributeValueMemberM{Value: item{"k": &types.AttributeValueMemberL{}}}, 3 + 1 + 1 + 3},
	} {
		if got := outbox.ItemSize(item{"ab": test.value}); got != 2+test.want {
			t.Errorf("%s: %d, want %d", name, got, 2+test.want)
		}
	}
	if got := outbox.ItemSize(nil); got != 0 {
		t.Errorf("no item: %d", got)
	}
	if got := outbox.ItemSize(item{"a": text("b"), "c": number("1")}); got != 2+3 {
		t.Errorf("attributes add up: %d, want 5", got)
	}
}
