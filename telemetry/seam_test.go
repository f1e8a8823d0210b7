package telemetry

// NewAdminServer lets tests serve connections that are in virtual time.
var NewAdminServer = newAdminServer
