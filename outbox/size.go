package outbox

import "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

const (
	containerBytes = 3 // a list or a map, whatever is in it
	elementBytes   = 1 // each element of a list or a map
)

// ItemSize is the size of an item in bytes by DynamoDB's documented rules, the one that its limits and
// its prices mean: for each attribute its name and its value in UTF-8 or raw bytes; a number one byte
// and one for every two significant digits; BOOL and NULL one byte; a list or map three bytes, and one
// for each element beside the element itself; a set the sum of its members. The keys count like every
// attribute. The documentation calls the rule for numbers approximate; a service that counts one byte
// more for a number is within the margin that MaxItemBytes leaves.
func ItemSize(item map[string]types.AttributeValue) int {
	size := 0
	for name, value := range item {
		size += len(name) + valueSize(value)
	}
	return size
}

func valueSize(value types.AttributeValue) int {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return numberSize(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberBOOL, *types.AttributeValueMemberNULL:
		return 1
	case *types.AttributeValueMemberSS:
		return sum(v.Value, func(s string) int { return len(s) })
	case *types.AttributeValueMemberNS:
		return sum(v.Value, numberSize)
	case *types.AttributeValueMemberBS:
		return sum(v.Value, func(b []byte) int { return len(b) })
	case *types.AttributeValueMemberL:
		return containerBytes + len(v.Value)*elementBytes + sum(v.Value, valueSize)
	case *types.AttributeValueMemberM:
		return containerBytes + len(v.Value)*elementBytes + ItemSize(v.Value)
	default:
		return 0
	}
}

func sum[T any](members []T, size func(T) int) int {
	total := 0
	for _, m := range members {
		total += size(m)
	}
	return total
}

// numberSize is one byte and one for every two significant digits, begun pairs included: zeros before
// the first and after the last other digit do not count, nor do sign, point and exponent.
func numberSize(number string) int {
	significant, zeros := 0, 0 // zeros: since the last other digit
	for _, c := range []byte(number) {
		switch {
		case c == 'e' || c == 'E':
			return 1 + (significant+1)/2
		case c == '0' && significant > 0:
			zeros++
		case c >= '1' && c <= '9':
			significant += zeros + 1
			zeros = 0
		}
	}
	return 1 + (significant+1)/2
}
