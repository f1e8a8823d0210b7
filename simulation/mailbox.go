package simulation

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
)

// dispatcher puts mailboxes among those that are ready, instead of running them.
type dispatcher struct{}

// Schedule implements actor.Dispatcher. The mailbox schedules itself, so nobody
// comes here.
func (dispatcher) Schedule(run func()) { run() }

// Throughput implements actor.Dispatcher.
func (dispatcher) Throughput() int { return 1 }

// mailbox takes one message a step. protoactor's own would drain its queue at
// once and hide most interleavings.
type mailbox struct {
	host         *process
	system, user []any
	suspended    bool
	queued       bool // among the ready ones
	invoker      actor.MessageInvoker
	name         string
}

// RegisterHandlers implements actor.Mailbox.
func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	m.invoker = invoker
	m.name = invoker.(actor.Context).Self().Id
}

// Start implements actor.Mailbox.
func (m *mailbox) Start() {}

// UserMessageCount implements actor.Mailbox.
func (m *mailbox) UserMessageCount() int { return len(m.user) }

// PostUserMessage implements actor.Mailbox.
func (m *mailbox) PostUserMessage(message any) {
	m.user = append(m.user, message)
	m.host.world.checkMailbox(m)
	m.schedule()
}

// PostSystemMessage implements actor.Mailbox.
func (m *mailbox) PostSystemMessage(message any) {
	m.system = append(m.system, message)
	m.schedule()
}

func (m *mailbox) schedule() {
	runnable := len(m.system) > 0 || len(m.user) > 0 && !m.suspended
	if m.queued || m.host.dead || !runnable {
		return
	}
	m.queued = true
	if m.host.stalledUntil > m.host.world.now {
		m.host.stalled = append(m.host.stalled, m)
		return
	}
	m.host.world.ready = append(m.host.world.ready, m)
}

// run handles one message; system messages come first, as in production.
func (m *mailbox) run() {
	var message any
	defer func() {
		if reason := recover(); reason != nil {
			m.host.panicked(m.name, reason)
			m.invoker.EscalateFailure(reason, message)
		}
		m.queued = false
		m.schedule()
	}()
	switch {
	case len(m.system) > 0:
		message, m.system = first(m.system)
		switch message.(type) {
		case *actor.SuspendMailbox:
			m.suspended = true
		case *actor.ResumeMailbox:
			m.suspended = false
		default:
			m.invoker.InvokeSystemMessage(message)
		}
	case len(m.user) > 0 && !m.suspended:
		message, m.user = first(m.user)
		m.invoker.InvokeUserMessage(message)
	}
}

// first takes the first message of a queue. One that is empty then keeps its
// memory for the next.
func first(queue []any) (message any, rest []any) {
	message, queue[0] = queue[0], nil
	if len(queue) == 1 {
		return message, queue[:0]
	}
	return message, queue[1:]
}

// maxMailbox bounds every mailbox: senders are bounded, so a deeper one is a
// leak.
const maxMailbox = 10_000

func (w *world) checkMailbox(m *mailbox) {
	if len(m.user) > maxMailbox {
		panic(fmt.Sprintf("mailbox of %s: more than %d messages", m.name, maxMailbox))
	}
}
