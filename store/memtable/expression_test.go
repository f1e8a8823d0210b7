package memtable

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// Whatever text comes in, an expression parses or is refused, and what parses
// can be evaluated: no panic, no error of another kind.
func FuzzExpressions(f *testing.F) {
	for _, text := range []string{
		"attribute_not_exists(LastSeenUtc) OR LastSeenUtc <= :v",
		"#n = :v AND (ExpiresAtUtc = :v OR NOT contains(L[0].X, :v))",
		"A BETWEEN :v AND :v", "size(A) IN (:v, B)", "((A = :v))", "begins_with(A, :v)", "attribute_type(A, :v)",
		"SET A = if_not_exists(A, :v) + :v, B[1].C = list_append(B, :v) REMOVE #n ADD D :v",
		"A, #n.B[0], C", "SET", "A[", "A[99999999999999999999] = :v", ":", "#", "\x00",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		db := New(Options{})
		b, err := db.bind(map[string]string{"#n": "N"}, item{":v": &types.AttributeValueMemberN{Value: "1"}})
		if err != nil {
			t.Fatal(err)
		}
		on := item{"A": &types.AttributeValueMemberN{Value: "1"}, "L": &types.AttributeValueMemberL{}}
		outbox := &table{hash: keyAttribute{name: "PK", kind: types.ScalarAttributeTypeS, limit: maxHashKey}}
		c, err := b.condition("ConditionExpression", &text)
		wantServiceError(t, err)
		if err == nil {
			c.holds(b, on)
			c.holds(b, nil)
			_, err = b.keyRange(outbox, &text)
			wantServiceError(t, err)
		}
		u, err := b.update(outbox, &text)
		wantServiceError(t, err)
		if err == nil {
			_, err = u.apply(on)
			wantServiceError(t, err)
		}
		paths, err := b.projection(&text)
		wantServiceError(t, err)
		if err == nil {
			project(on, paths)
		}
	})
}

func wantServiceError(t *testing.T, err error) {
	t.Helper()
	var service smithy.APIError
	if err != nil && !errors.As(err, &service) {
		t.Fatalf("got an error of another kind: %v", err)
	}
}

func TestReservedWordsAreTheDocumentedOnes(t *testing.T) {
	if len(reservedSet) != 573 {
		t.Errorf("%d words, the documentation has 573", len(reservedSet))
	}
	for word, want := range map[string]bool{
		"Owner": true, "sequence": true, "KEY": true, "Value": true, "Partition": true, "Count": true, "zone": true,
		"ExpiresAtUtc": false, "LastSeenUtc": false, "PK": false, "Topic": false, "Headers": false,
	} {
		if reserved(word) != want {
			t.Errorf("reserved(%q) = %v", word, !want)
		}
	}
}

// A caller that writes its values into the text does not grow the cache for ever.
func TestParsedExpressionsAreBounded(t *testing.T) {
	db := New(Options{})
	for length := range 3 * maxParsed {
		text := "attribute_exists(" + strings.Repeat("A", length+1) + ")"
		b, _ := db.bind(nil, nil)
		if _, err := b.condition("ConditionExpression", &text); err != nil {
			t.Fatal(err)
		}
	}
	if kept := len(db.parsed.conditions.parsed); kept > maxParsed {
		t.Errorf("%d expressions are kept, the bound is %d", kept, maxParsed)
	}
}
