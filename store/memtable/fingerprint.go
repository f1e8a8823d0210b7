package memtable

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// fingerprint tells transactions with different items apart.
type fingerprint [sha256.Size]byte

// fingerprintOf covers all that the parts of a transaction say. Everything is
// written with its length, so that no two requests run together.
func fingerprintOf(parts []part) fingerprint {
	var w fingerprinter
	for _, p := range parts {
		w.text(string(p.kind), aws.ToString(p.table), aws.ToString(p.update),
			aws.ToString(p.condition.expression), string(p.condition.refusal))
		w.attributes(p.attributes)
		w.names(p.condition.names)
		w.attributes(p.condition.values)
	}
	return sha256.Sum256(w.written)
}

type fingerprinter struct{ written []byte }

func (w *fingerprinter) length(n int) {
	w.written = binary.LittleEndian.AppendUint64(w.written, uint64(n))
}

func (w *fingerprinter) text(parts ...string) {
	for _, part := range parts {
		w.length(len(part))
		w.written = append(w.written, part...)
	}
}

func (w *fingerprinter) bytes(b []byte) {
	w.length(len(b))
	w.written = append(w.written, b...)
}

func (w *fingerprinter) names(names map[string]string) {
	w.length(len(names))
	for _, name := range sortedKeys(names) {
		w.text(name, names[name])
	}
}

func (w *fingerprinter) attributes(attributes item) {
	w.length(len(attributes))
	for _, name := range sortedKeys(attributes) {
		w.text(name)
		w.value(attributes[name])
	}
}

func (w *fingerprinter) value(value types.AttributeValue) {
	w.text(typeName(value))
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		w.text(v.Value)
	case *types.AttributeValueMemberN:
		w.text(v.Value)
	case *types.AttributeValueMemberB:
		w.bytes(v.Value)
	case *types.AttributeValueMemberBOOL:
		if v.Value {
			w.text("true")
		}
	case *types.AttributeValueMemberSS:
		w.length(len(v.Value))
		w.text(v.Value...)
	case *types.AttributeValueMemberNS:
		w.length(len(v.Value))
		w.text(v.Value...)
	case *types.AttributeValueMemberBS:
		w.length(len(v.Value))
		for _, element := range v.Value {
			w.bytes(element)
		}
	case *types.AttributeValueMemberL:
		w.length(len(v.Value))
		for _, element := range v.Value {
			w.value(element)
		}
	case *types.AttributeValueMemberM:
		w.attributes(v.Value)
	}
}
