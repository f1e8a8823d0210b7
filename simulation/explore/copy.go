package explore

import (
	"math/rand/v2"
	"reflect"
	"unsafe"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/looplab/fsm"

	"github.com/bucketbrigade/relay/actors/bucket"
	"github.com/bucketbrigade/relay/actors/coordinator"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/store"
)

// sharedTypes are values that nobody changes once they are made, and the doors to
// the outside, which are the same for all copies: they are not copied, and, but for
// leases and rows, not part of what a state is.
var sharedTypes = map[reflect.Type]bool{
	reflect.TypeFor[actor.PID]():          true,
	reflect.TypeFor[rand.Rand]():          true,
	reflect.TypeFor[store.Lease]():        true,
	reflect.TypeFor[coordinator.Config](): true,
	reflect.TypeFor[bucket.Config]():      true,
	reflect.TypeFor[outbox.Row]():         true,
}

// shallow are types whose own fields change, and nothing behind them.
var shallow = map[reflect.Type]bool{reflect.TypeFor[fsm.FSM](): true}

// parting makes a value that was copied bit by bit independent of its original; nil
// when it is already.
type parting func(unsafe.Pointer)

// copies are the partings of the types that were met.
type copies map[reflect.Type]parting

// of is a copy of what a pointer points to that shares nothing with it that can
// change. Values in interfaces (messages, errors, the runtime) and functions are
// shared.
func (c copies) of(pointer any) any {
	from := reflect.ValueOf(pointer)
	to := reflect.New(from.Type().Elem())
	to.Elem().Set(from.Elem())
	if part := c.parting(from.Type().Elem()); part != nil {
		part(to.UnsafePointer())
	}
	return to.Interface()
}

func (c copies) parting(t reflect.Type) parting {
	if known, ok := c[t]; ok {
		return known
	}
	var made parting
	switch t.Kind() {
	case reflect.Pointer:
		made = c.ofPointer(t)
	case reflect.Slice:
		made = c.ofSlice(t)
	case reflect.Map:
		made = func(p unsafe.Pointer) {
			v := reflect.NewAt(t, p).Elem()
			if v.IsNil() {
				return
			}
			n := reflect.MakeMapWithSize(t, v.Len())
			for entries := v.MapRange(); entries.Next(); {
				n.SetMapIndex(entries.Key(), entries.Value())
			}
			v.Set(n)
		}
	case reflect.Array:
		if element := c.parting(t.Elem()); element != nil {
			made = func(p unsafe.Pointer) {
				for i := range t.Len() {
					element(unsafe.Add(p, uintptr(i)*t.Elem().Size()))
				}
			}
		}
	case reflect.Struct:
		made = c.ofStruct(t)
	}
	c[t] = made
	return made
}

func (c copies) ofPointer(t reflect.Type) parting {
	if sharedTypes[t.Elem()] {
		return nil
	}
	behind := c.parting(t.Elem())
	return func(p unsafe.Pointer) {
		to := (*unsafe.Pointer)(p)
		if *to == nil {
			return
		}
		n := reflect.New(t.Elem())
		n.Elem().Set(reflect.NewAt(t.Elem(), *to).Elem())
		if behind != nil {
			behind(n.UnsafePointer())
		}
		*to = n.UnsafePointer()
	}
}

func (c copies) ofSlice(t reflect.Type) parting {
	element, size := c.parting(t.Elem()), t.Elem().Size()
	return func(p unsafe.Pointer) {
		v := reflect.NewAt(t, p).Elem()
		if v.IsNil() {
			return
		}
		n := reflect.MakeSlice(t, v.Len(), v.Len())
		reflect.Copy(n, v)
		for i := 0; element != nil && i < n.Len(); i++ {
			element(unsafe.Add(n.UnsafePointer(), uintptr(i)*size))
		}
		v.Set(n)
	}
}

func (c copies) ofStruct(t reflect.Type) parting {
	if sharedTypes[t] || shallow[t] {
		return nil
	}
	type field struct {
		offset uintptr
		part   parting
	}
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Name == "effects" { // of the step before
			fields = append(fields, field{f.Offset, func(p unsafe.Pointer) { reflect.NewAt(f.Type, p).Elem().SetZero() }})
		} else if part := c.parting(f.Type); part != nil {
			fields = append(fields, field{f.Offset, part})
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return func(p unsafe.Pointer) {
		for _, f := range fields {
			f.part(unsafe.Add(p, f.offset))
		}
	}
}

// open lifts the ban on a field that is not exported; the value is addressable.
func open(v reflect.Value) reflect.Value {
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
}
