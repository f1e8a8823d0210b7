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
// the outside, which are the same for all copies: they are neither copied nor, but
// for leases, part of what a state is.
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

// scratch are fields of the cores that each step sets before it looks at them.
var scratch = map[string]bool{"effects": true, "now": true}

// copies remembers which types hold references.
type copies map[reflect.Type]bool

// of is a copy of what a pointer points to that shares nothing with it that can
// change. Values in interfaces (messages, errors, the runtime) and functions are
// shared.
func (c copies) of(pointer any) any {
	from := reflect.ValueOf(pointer)
	to := reflect.New(from.Type().Elem())
	to.Elem().Set(from.Elem())
	c.part(to.Elem())
	return to.Interface()
}

// part makes an addressable value that was copied bit by bit independent of its
// original.
func (c copies) part(v reflect.Value) {
	if !c.refers(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || sharedTypes[v.Type().Elem()] {
			return
		}
		n := reflect.New(v.Type().Elem())
		memmove(n.Elem(), v.Elem())
		c.part(n.Elem())
		v.Set(n)
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		n := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(n, v)
		for i := range n.Len() {
			c.part(n.Index(i))
		}
		v.Set(n)
	case reflect.Map:
		if v.IsNil() {
			return
		}
		n := reflect.MakeMapWithSize(v.Type(), v.Len())
		for entries := v.MapRange(); entries.Next(); {
			n.SetMapIndex(entries.Key(), entries.Value())
		}
		v.Set(n)
	case reflect.Array:
		for i := range v.Len() {
			c.part(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := open(v.Field(i))
			if scratch[v.Type().Field(i).Name] && f.Kind() == reflect.Slice {
				f.SetZero()
				continue
			}
			c.part(f)
		}
	}
}

// refers tells whether a type holds something that a copy must not share.
func (c copies) refers(t reflect.Type) bool {
	if known, ok := c[t]; ok {
		return known
	}
	refers := false
	switch t.Kind() {
	case reflect.Slice, reflect.Map:
		refers = true
	case reflect.Pointer:
		refers = !sharedTypes[t.Elem()]
	case reflect.Array:
		refers = c.refers(t.Elem())
	case reflect.Struct:
		for i := 0; i < t.NumField() && !refers && !sharedTypes[t] && !shallow[t]; i++ {
			refers = c.refers(t.Field(i).Type)
		}
	}
	c[t] = refers
	return refers
}

// open lifts the ban on a field that is not exported; the value is addressable.
func open(v reflect.Value) reflect.Value {
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
}

// memmove copies a value bit by bit, fields that are not exported included.
func memmove(to, from reflect.Value) { to.Set(open(from)) }
