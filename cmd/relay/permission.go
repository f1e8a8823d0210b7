package main

import "github.com/bucketbrigade/relay/store"

// role is who works with a table, and what its credentials are for.
type role string

const (
	roleRelay    role = "relay"    // relay run, or an embedded relay
	roleWriter   role = "writer"   // a service that writes messages
	roleOperator role = "operator" // whoever types the other commands, on a table that is there
)

func roles() []role { return []role{roleRelay, roleWriter, roleOperator} }

// What describes the table, which no relay does: a transaction has no action of its own
// either, and is authorized by those of what is in it.
const (
	actionDescribeTable      store.Action = "dynamodb:DescribeTable"
	actionDescribeTimeToLive store.Action = "dynamodb:DescribeTimeToLive"
)

// permission is one action that a role needs on the table.
type permission struct {
	action store.Action
	why    string
}

// permissions are all that a role needs, and no more: every policy of ours is made of
// them, and a test compares them with what is sent. Creating the table is nobody's here:
// it is done once, by whoever sets up what else there is.
func permissions(of role) []permission {
	switch of {
	case roleWriter:
		return []permission{
			{store.ActionPutItem, "messages, also within the service's transactions"},
			{store.ActionUpdateItem, "numbers of messages"},
		}
	case roleOperator:
		return []permission{
			{store.ActionQuery, "all views"},
			{store.ActionPutItem, "messages enqueued by hand; keys and topics set aside"},
			{store.ActionUpdateItem, "numbers, retries, pauses, leases, and the bell that owners hear"},
			{store.ActionDeleteItem, "rows that are discarded, or moved aside because they cannot be read"},
			{store.ActionBatchWriteItem, "relay doctor, which tries what a relay needs"},
			{store.ActionConditionCheck, "likewise"},
			{actionDescribeTable, "relay table show, relay table iam without --account, relay doctor"},
			{actionDescribeTimeToLive, "relay doctor"},
		}
	default:
		return []permission{
			{store.ActionQuery, "leases, waiting rows, gaps, and what is set aside"},
			{store.ActionPutItem, "heartbeats; rows and keys set aside"},
			{store.ActionUpdateItem, "leases, and the stamp of a stop"},
			{store.ActionDeleteItem, "records of relays that are gone; rows set aside, once delivered"},
			{store.ActionBatchWriteItem, "rows that were acknowledged"},
			{store.ActionConditionCheck, "no row is set aside without the lease"},
		}
	}
}

// actions are the names alone, in the order of permissions.
func actions(of role) []string {
	var names []string
	for _, p := range permissions(of) {
		names = append(names, string(p.action))
	}
	return names
}
