package outbox_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"

	"github.com/bucketbrigade/relay/outbox"
)

// entrances are the ways into the table; what is refused by one is refused by all.
var entrances = map[string]func(*testing.T, *outbox.Writer, ...outbox.Message) error{
	"Enqueue": func(t *testing.T, w *outbox.Writer, messages ...outbox.Message) error {
		return w.Enqueue(t.Context(), messages...)
	},
	"TransactItems": func(t *testing.T, w *outbox.Writer, messages ...outbox.Message) error {
		_, err := w.TransactItems(t.Context(), messages)
		return err
	},
	"Commit": func(t *testing.T, w *outbox.Writer, messages ...outbox.Message) error {
		return w.Commit(t.Context(), &dynamodb.TransactWriteItemsInput{}, messages...)
	},
}

// sized is a message in bucket 0 whose item has this size; headers make up a part of it.
func sized(size int) outbox.Message {
	m := messageIn(0)
	m.Headers = []outbox.Header{{Key: "h", Value: make([]byte, 1000)}, {Key: "null"}}
	m.Value = nil
	base := outbox.ItemSize(schema.EncodeMessage(m, 0, 1))
	m.Value = make([]byte, size-base-len("Value"))
	return m
}

func TestItemOfExactlyTheLimitIsStored(t *testing.T) {
	if outbox.MaxItemBytes != 408_576 {
		t.Fatalf("the limit is %d", outbox.MaxItemBytes)
	}
	for name, enter := range entrances {
		table := newFakeTable()
		w, _ := newWriter(t, table)
		m := sized(outbox.MaxItemBytes)
		if got := outbox.ItemSize(schema.EncodeMessage(m, 0, 1<<62)); got != outbox.MaxItemBytes {
			t.Fatalf("%s: the test's item has %d bytes", name, got)
		}
		if err := enter(t, w, m); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// One byte more, and nothing is reserved or written (case D-15).
func TestItemOverTheLimitIsTooLarge(t *testing.T) {
	for name, enter := range entrances {
		table := newFakeTable()
		w, notes := newWriter(t, table)
		small, large := messageIn(1), sized(outbox.MaxItemBytes+1)
		err := enter(t, w, small, large)
		var fact *outbox.SizeError
		if !errors.Is(err, outbox.ErrTooLarge) || !errors.As(err, &fact) {
			t.Fatalf("%s: got %v", name, err)
		}
		want := outbox.SizeError{Index: 1, ID: large.ID, Size: 408_577, Limit: 408_576}
		if *fact != want {
			t.Errorf("%s: got %+v, want %+v", name, *fact, want)
		}
		if want := fmt.Sprintf("message 1 (%s): its item has 408577 bytes, the limit is 408576", large.ID); !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q does not say %q", name, err, want)
		}
		wantNothingSent(t, table, notes)
	}
}

func wantNothingSent(t *testing.T, table *fakeTable, notes *notes) {
	t.Helper()
	if n := len(table.reservations) + len(table.puts) + len(table.transactions); n != 0 {
		t.Errorf("%d requests were sent, want none, no reservation either", n)
	}
	if len(notes.calls) != 0 {
		t.Errorf("notified %v", notes.calls)
	}
}

func TestItemsOfACallMayHaveFourMebibytes(t *testing.T) {
	var messages []outbox.Message
	for range 16 {
		messages = append(messages, sized(1<<18)) // 16 * 256 KiB
	}
	for name, enter := range entrances {
		w, _ := newWriter(t, newFakeTable())
		if err := enter(t, w, messages...); err != nil {
			t.Errorf("%s: exactly at the limit: %v", name, err)
		}
		table := newFakeTable()
		w, notes := newWriter(t, table)
		more := append(messages[:15:15], sized(1<<18+1), messageIn(0))
		err := enter(t, w, more...)
		var fact *outbox.SizeError
		if !errors.Is(err, outbox.ErrTooLarge) || !errors.As(err, &fact) {
			t.Fatalf("%s: got %v", name, err)
		}
		if fact.Index != 15 || fact.ID != more[15].ID || fact.Limit != 4<<20 || fact.Size <= 4<<20+1 {
			t.Errorf("%s: got %+v, want message 15 and the size of all", name, *fact)
		}
		wantNothingSent(t, table, notes)
	}
}

func TestCallsMayHaveAHundredItems(t *testing.T) {
	var messages []outbox.Message
	for i := range int32(101) {
		messages = append(messages, messageIn(i%8))
	}
	for name, enter := range entrances {
		w, _ := newWriter(t, newFakeTable())
		if err := enter(t, w, messages[:100]...); err != nil {
			t.Errorf("%s: 100 messages: %v", name, err)
		}
		table := newFakeTable()
		w, notes := newWriter(t, table)
		err := enter(t, w, messages...)
		want := fmt.Sprintf("message 100 (%s): the first beyond the limit of 100 items, the call has 101", messages[100].ID)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
		wantNothingSent(t, table, notes)
	}
}

// The caller's own items share both limits with the messages.
func TestCommitCountsTheCallersItems(t *testing.T) {
	put := func(size int) types.TransactWriteItem {
		return types.TransactWriteItem{Put: &types.Put{TableName: aws.String("orders"), Item: item{
			"PK": text("o"), "SK": text("1"), "body": binary(make([]byte, size-10)),
		}}}
	}
	own := make([]types.TransactWriteItem, 99)
	for i := range own {
		own[i] = put(100)
	}
	table := newFakeTable()
	w, notes := newWriter(t, table)
	m := messageIn(1)
	err := w.Commit(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: own}, messageIn(0), m)
	if want := fmt.Sprintf("message 1 (%s): the first beyond", m.ID); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("99 items and 2 messages: got %v, want %q", err, want)
	}
	wantNothingSent(t, table, notes)
	if err := w.Commit(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: own}, m); err != nil {
		t.Errorf("99 items and 1 message: %v", err)
	}

	for range 10 {
		own = append(own[:10:10], put(4<<20-1000))
	}
	table = newFakeTable()
	w, notes = newWriter(t, table)
	if err := w.Commit(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: own}, m); !errors.Is(err, outbox.ErrTooLarge) {
		t.Errorf("4 MiB of the caller's and a message: got %v", err)
	}
	wantNothingSent(t, table, notes)
}

func TestRefusedMessagesAreAllNamed(t *testing.T) {
	valid, minus := messageIn(0), int32(-1)
	spoilt := func(spoil func(*outbox.Message)) outbox.Message {
		m := valid
		m.ID = uuid.New()
		spoil(&m)
		return m
	}
	faults := []struct {
		message outbox.Message
		problem string
	}{
		{spoilt(func(m *outbox.Message) { m.Topic = "" }), `topic "" is blank`},
		{spoilt(func(m *outbox.Message) { m.Topic = " \t" }), `topic " \t" is blank`},
		{spoilt(func(m *outbox.Message) { m.Topic = "a\xff" }), `topic "a\xff" is not valid UTF-8`},
		{spoilt(func(m *outbox.Message) { m.ID = uuid.Nil }), "its id is zero"},
		{spoilt(func(m *outbox.Message) { m.Partition = &minus }), "partition -1 is negative"},
		{spoilt(func(m *outbox.Message) { m.CreatedAt = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC) }), "in the year 10000"},
		{spoilt(func(m *outbox.Message) { m.CreatedAt = time.Time{}.Add(-1) }), "in the year 0"},
		{spoilt(func(m *outbox.Message) { m.ID, m.Topic, m.Partition = uuid.Nil, "", &minus }),
			`its id is zero, topic "" is blank, partition -1 is negative`},
		{sized(outbox.MaxItemBytes + 1), "its item has 408577 bytes"},
	}
	messages := []outbox.Message{valid}
	for _, f := range faults {
		messages = append(messages, f.message)
	}
	for name, enter := range entrances {
		table := newFakeTable()
		w, notes := newWriter(t, table)
		err := enter(t, w, messages...)
		if err == nil {
			t.Fatal(name, "accepts everything")
		}
		for i, f := range faults {
			line := fmt.Sprintf("message %d (%s): ", i+1, f.message.ID)
			_, rest, named := strings.Cut(err.Error(), line)
			if rest, _, _ = strings.Cut(rest, "\n"); !named || !strings.Contains(rest, f.problem) {
				t.Errorf("%s: %q with %q is not in\n%s", name, line, f.problem, err)
			}
		}
		if strings.Contains(err.Error(), "message 0") {
			t.Errorf("%s: the valid message is named in\n%s", name, err)
		}
		wantNothingSent(t, table, notes)
	}
}

func TestTransactItemRefusesItsMessage(t *testing.T) {
	table := newFakeTable()
	w, notes := newWriter(t, table)
	if i, err := w.TransactItem(t.Context(), outbox.Message{}); err == nil || i.Put != nil {
		t.Errorf("got %v, %v", i, err)
	}
	wantNothingSent(t, table, notes)
}
