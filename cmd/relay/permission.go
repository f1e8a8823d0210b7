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

// The names of IAM's actions. A transaction has none of its own: it is authorized by the
// actions of what is in it, each put, update, delete and condition check.
const (
	actionQuery          = string(store.ActionQuery)
	actionPut            = string(store.ActionPutItem)
	actionUpdate         = string(store.ActionUpdateItem)
	actionDelete         = string(store.ActionDeleteItem)
	actionBatchWrite     = string(store.ActionBatchWriteItem)
	actionConditionCheck = string(store.ActionConditionCheck)
	actionDescribe       = "dynamodb:DescribeTable"
	actionDescribeExpiry = "dynamodb:DescribeTimeToLive"
)

// permission is one action that a role needs on the table.
type permission struct {
	action string
	why    string
}

// permissions are all that a role needs, and no more: every policy of ours is made of
// them, and a test compares them with what is sent. Creating the table is nobody's here:
// it is done once, by whoever sets up what else there is.
func permissions(of role) []permission {
	switch of {
	case roleWriter:
		return []permission{
			{actionPut, "messages, also within the service's transactions"},
			{actionUpdate, "numbers of messages"},
		}
	case roleOperator:
		return []permission{
			{actionQuery, "all views"},
			{actionPut, "messages enqueued by hand; keys and topics set aside"},
			{actionUpdate, "numbers, retries, leases, and the bell that owners hear"},
			{actionDelete, "rows that are discarded, or moved aside because they cannot be read"},
			{actionDescribe, "relay table show, relay table iam without --account, relay doctor"},
			{actionDescribeExpiry, "relay doctor"},
		}
	default:
		return []permission{
			{actionQuery, "leases, waiting rows, gaps, and what is set aside"},
			{actionPut, "heartbeats; rows and keys set aside"},
			{actionUpdate, "leases, and the stamp of a stop"},
			{actionDelete, "records of relays that are gone; rows set aside, once delivered"},
			{actionBatchWrite, "rows that were acknowledged"},
			{actionConditionCheck, "no row is set aside without the lease"},
		}
	}
}

// actions are the names alone, in the order of permissions.
func actions(of role) []string {
	var names []string
	for _, p := range permissions(of) {
		names = append(names, p.action)
	}
	return names
}
