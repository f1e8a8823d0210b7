// Command relay is the operator's side of Bucket Brigade: it runs relays, sets
// up their table, and looks at what waits in it.
//
// There is one file per command, with one struct that holds the command's
// arguments. Package settings fills the configurations; app.go turns a command
// into one of cobra's and decides exit codes; aws.go makes the DynamoDB
// clients. This is the only place that reads flags, environment, files and
// signals.
package main
