// Package settings turns flags, environment and a YAML file into the
// configurations that the relay's packages define: relay.Config and
// kafka.Config are the truth, and this package only fills them.
//
// One table (Settings.table) lists every setting once: its name, the field that
// it fills, and a line for people. The flag --lease-duration, the variable
// RELAY_LEASE_DURATION and the YAML key lease-duration all follow from the name.
// Flags win over variables, variables over the file, the file over defaults.
//
// Faults are collected, never returned one at a time: an operator corrects all
// of them in one go. Nothing here opens a connection, so a wrong configuration
// is found before any request is sent.
package settings
