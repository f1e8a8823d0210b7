// Package publisher sends records in order. Its core has the whole order
// algorithm of ordered mode: pools of producers by the topics' size limit,
// partitions computed here, the priming lock, careful producers that find the
// guilty row of a rejected request, the fatal path, retirement, and the byte
// budget. It works over the thin Producer port, which librdkafka (package
// kafka) and the simulation's broker implement.
//
// Fenced mode is an algorithm of its own beside that (fenced.go, fence.go,
// transaction.go): a transactional producer for each bucket, whose fence its owner
// takes before it fetches, and transactions that a relay without the fence cannot
// commit. It shares with ordered mode what is not about order: batches, the budget,
// topics, records, the way to the brokers. Which mode it is, is chosen when the
// publisher is made.
//
// It owns the producers' use; the runtime owns their life. It knows nothing of
// leases but the instant after which a batch must not be sent, and in fenced mode
// how long ago that one was renewed.
//
// What it promises: of one bucket, no row becomes visible before an earlier row
// of its topic and key, and none before an earlier one on its partition, unless
// that one was left out by the bucket; a row is Acknowledged only when a broker
// has it; a row is Refused only when it was alone in its request; each Publish is
// answered once. It does not promise order while a topic is deleted and created
// again: the new partitions know no producer, and take whatever comes first.
//
// To read it: messages.go and port.go are the two sides, submit.go decides which
// row may go, outcome.go what a report means, producers.go the life of a
// producer. The scenarios in testdata tell the same as stories. The events of
// records, producers and brokers are emitted here, those of batches by the bucket.
package publisher
