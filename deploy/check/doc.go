// Package check judges the files of deploy by the tools that will read them: the chart by
// Helm's own engine, linter and schema, and what it renders by the types of Kubernetes;
// compose.yaml by Compose's loader; the unit by systemd-analyze; CloudFormation by cfn-lint
// and Terraform by its parser. `make deploy` runs it.
//
// It is a module of its own, so that none of these tools is a dependency of the relay.
// What needs no such tool is checked beside the code: names of metrics in package
// telemetry, settings and exit codes in cmd/relay. A cluster, a Docker daemon and AWS are
// not here: docs/operations.md says what is untried.
package check
