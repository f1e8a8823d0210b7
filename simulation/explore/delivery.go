package explore

import "github.com/bucketbrigade/relay/store"

// Row is one message of the script.
type Row struct{}

func (w *world) publishing() bool                                { return false }
func (w *world) encodeDelivery(*encoder)                         {}
func (x *search) beginDelivery(*world)                           {}
func (w *world) deliveryChoices(func(choiceKind, int, int)) bool { return false }
func (w *world) deliveryFaults(func(choiceKind, int, int))       {}
func (w *world) delivers(choice)                                 {}
func (w *world) healDelivery()                                   {}
func (w *world) deliverBatch()                                   {}
func (w *world) wordsOfDelivery(choice) string                   { return "" }
func (x *search) toPublisher(*process, any)                      {}
func (w *world) deleting(*process, store.Delete, *table)         {}
func (w *world) checkDelivery()                                  {}
func (w *world) settledDelivery()                                {}
