// Package publisher sends records in order. Its core has the whole order
// algorithm of ordered mode: pools of producers by the topics' size limit,
// partitions computed here, the priming lock, careful producers that find the
// guilty row of a rejected request, the fatal path, retirement, and the byte
// budget. It works over the thin Producer port, which librdkafka (package
// kafka) and the simulation's broker implement.
//
// It owns the producers' use; the runtime owns their life. It knows nothing of
// leases but the instant after which a batch must not be sent.
package publisher
