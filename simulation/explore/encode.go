package explore

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/looplab/fsm"

	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// encoder writes values as bytes, such that two values have the same bytes only if
// no actor could tell them apart: pointers are followed, maps sorted. What decides
// nothing is left out (see compile and blanks).
type encoder struct {
	out []byte
	// lastToken is the latest token of the actor that is written: others are written
	// as how long ago they were given out.
	lastToken uint64
	now       store.Instant
}

func (e *encoder) number(n int64)  { e.out = binary.AppendVarint(e.out, n) }
func (e *encoder) text(s string)   { e.number(int64(len(s))); e.out = append(e.out, s...) }
func (e *encoder) hash() stateHash { return hashOf(e.out) }

func (e *encoder) is(holds bool) {
	if holds {
		e.number(1)
	} else {
		e.number(0)
	}
}

// token writes which of the actor's requests is meant.
func (e *encoder) token(n uint64) {
	if n == 0 {
		e.number(-1)
		return
	}
	e.number(int64(e.lastToken - n))
}

// any writes a value with its type.
func (e *encoder) any(value any) {
	v := reflect.ValueOf(value)
	if !v.IsValid() {
		e.number(0)
		return
	}
	if err, ok := value.(error); ok {
		e.text(err.Error())
		return
	}
	if doors[v.Type()] {
		return
	}
	e.text(v.Type().String())
	addressable := reflect.New(v.Type())
	addressable.Elem().Set(v)
	compile(v.Type())(e, addressable.UnsafePointer())
}

// doors are the types through which actors reach the outside.
var doors = map[reflect.Type]bool{reflect.TypeFor[*runtime](): true}

// writer writes the value of one type that is at an address.
type writer func(*encoder, unsafe.Pointer)

// writers are those that were compiled; nil while one is under way, which only types
// that contain themselves would notice.
var writers = map[reflect.Type]writer{}

// compile is the writer of a type.
func compile(t reflect.Type) writer {
	if w, known := writers[t]; known {
		return w
	}
	w := compileNew(t)
	writers[t] = w
	return w
}

func nothing(*encoder, unsafe.Pointer) {}

func compileNew(t reflect.Type) writer {
	switch t {
	case reflect.TypeFor[*actor.PID]():
		return func(e *encoder, p unsafe.Pointer) {
			if pid := *(**actor.PID)(p); pid != nil {
				e.text(pid.Id)
			}
		}
	case reflect.TypeFor[*fsm.FSM]():
		return func(e *encoder, p unsafe.Pointer) { e.text((*(**fsm.FSM)(p)).Current()) }
	case reflect.TypeFor[store.Request](): // until when it may leave is decided when it does
		return func(e *encoder, p unsafe.Pointer) {
			if r := *(*store.Request)(p); r != nil {
				e.text(requestCode(r))
			}
			e.text("")
		}
	case reflect.TypeFor[outbox.Row]():
		return func(e *encoder, p unsafe.Pointer) { e.number((*outbox.Row)(p).Sequence) }
	}
	switch t.Kind() {
	case reflect.Bool:
		return func(e *encoder, p unsafe.Pointer) { e.is(*(*bool)(p)) }
	case reflect.Int32:
		return func(e *encoder, p unsafe.Pointer) { e.number(int64(*(*int32)(p))) }
	case reflect.Int8, reflect.Uint8:
		return func(e *encoder, p unsafe.Pointer) { e.out = append(e.out, *(*byte)(p)) }
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64:
		return func(e *encoder, p unsafe.Pointer) { e.number(*(*int64)(p)) }
	case reflect.Float64:
		return nothing // the capacity that a request used
	case reflect.String:
		return func(e *encoder, p unsafe.Pointer) { e.text(*(*string)(p)) }
	case reflect.Func:
		return nothing
	case reflect.Pointer:
		return compilePointer(t)
	case reflect.Interface:
		return func(e *encoder, p unsafe.Pointer) { e.any(reflect.NewAt(t, p).Elem().Interface()) }
	case reflect.Slice:
		return compileSlice(t)
	case reflect.Array:
		element, size := compile(t.Elem()), t.Elem().Size()
		return func(e *encoder, p unsafe.Pointer) {
			for i := range t.Len() {
				element(e, unsafe.Add(p, uintptr(i)*size))
			}
		}
	case reflect.Map:
		return func(e *encoder, p unsafe.Pointer) { e.entries(reflect.NewAt(t, p).Elem()) }
	case reflect.Struct:
		return compileStruct(t)
	}
	panic(fmt.Sprintf("explore: a %s cannot be part of a state", t))
}

func compilePointer(t reflect.Type) writer {
	if sharedTypes[t.Elem()] && t.Elem() != reflect.TypeFor[store.Lease]() || doors[t] {
		return nothing
	}
	element := compile(t.Elem())
	return func(e *encoder, p unsafe.Pointer) {
		to := *(*unsafe.Pointer)(p)
		e.is(to != nil)
		if to != nil {
			element(e, to)
		}
	}
}

func compileSlice(t reflect.Type) writer {
	element, size := compile(t.Elem()), t.Elem().Size()
	return func(e *encoder, p unsafe.Pointer) {
		v := reflect.NewAt(t, p).Elem()
		e.number(int64(v.Len()))
		for i := range v.Len() {
			element(e, unsafe.Add(v.UnsafePointer(), uintptr(i)*size))
		}
	}
}

func (e *encoder) entries(v reflect.Value) {
	key, value := compile(v.Type().Key()), compile(v.Type().Elem())
	var parts []string
	for entries := v.MapRange(); entries.Next(); {
		one := encoder{lastToken: e.lastToken, now: e.now}
		k, held := reflect.New(v.Type().Key()), reflect.New(v.Type().Elem())
		k.Elem().Set(entries.Key())
		held.Elem().Set(entries.Value())
		key(&one, k.UnsafePointer())
		value(&one, held.UnsafePointer())
		parts = append(parts, string(one.out))
	}
	slices.Sort(parts)
	e.number(int64(len(parts)))
	for _, part := range parts {
		e.text(part)
	}
}

// compileStruct writes the fields one after another, but for those that decide
// nothing.
func compileStruct(t reflect.Type) writer {
	if sharedTypes[t] && t != reflect.TypeFor[store.Lease]() {
		return nothing
	}
	type part struct {
		offset uintptr
		write  writer
	}
	var parts []part
	for i := range t.NumField() {
		f := t.Field(i)
		rule, ruled := blanks[t.String()+"."+f.Name]
		switch {
		case ruled && rule == nil:
		case ruled:
			parts = append(parts, part{f.Offset, rule})
		default:
			parts = append(parts, part{f.Offset, compile(f.Type)})
		}
	}
	whole := func(e *encoder, p unsafe.Pointer) {
		for _, one := range parts {
			one.write(e, unsafe.Add(p, one.offset))
		}
	}
	return idle(t, whole)
}
