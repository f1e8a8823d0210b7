package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
)

// newReference is for those who build packages and documentation; it is not shown among
// the commands. Like cobra's completion, it is about the commands and needs no settings.
func newReference(a *app) *cobra.Command {
	cmd := a.group("reference", "Writes what is known of all commands",
		&cobra.Command{
			Use: "man DIRECTORY", Short: "Writes a man page for each command into a directory",
			Args: cobra.ExactArgs(1), SilenceErrors: true, SilenceUsage: true,
			RunE: func(cmd *cobra.Command, args []string) error { return writeMan(cmd.Root(), args[0]) },
		},
		&cobra.Command{
			Use: "markdown", Short: "Prints docs/cli.md",
			Args: cobra.NoArgs, SilenceErrors: true, SilenceUsage: true,
			RunE: func(cmd *cobra.Command, _ []string) error {
				_, err := fmt.Fprint(a.stdout, reference(cmd.Root()))
				return err
			},
		})
	cmd.Hidden = true
	return cmd
}

// writeMan writes relay.1, relay-run.1 and so on. Their date is SOURCE_DATE_EPOCH's where
// that is set, so that a build can be repeated.
func writeMan(root *cobra.Command, directory string) error {
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return runError{err}
	}
	root.DisableAutoGenTag = true
	header := &doc.GenManHeader{Title: "RELAY", Section: "1", Source: "Bucket Brigade", Manual: "Bucket Brigade"}
	if err := doc.GenManTree(root, header, directory); err != nil {
		return runError{fmt.Errorf("write the man pages: %w", err)}
	}
	return nil
}

// reference is docs/cli.md: all commands with what is theirs, and the settings once.
func reference(root *cobra.Command) string {
	var out strings.Builder
	out.WriteString(`# Commands

<!-- Written by: go test ./cmd/relay -run Reference -update -->

What each command does, and all settings. "relay COMMAND --help" says the same, man pages too (` + "`make man`" + `), and
` + "`relay completion bash|zsh|fish|powershell`" + ` prints what a shell needs to complete them.

Results go to stdout, logs and questions to stderr. Exit codes: 0 done, 1 failed while running, 2 bad usage or
settings (nothing was started), 3 the table contradicts the settings. What changes something shows it and asks first;
` + "`--yes`" + ` answers, ` + "`--dry-run`" + ` shows the requests and sends none. No command waits for a table that does not answer:
a request that is not through after ` + "`--timeout`" + ` (15 s), its repetitions included, ends it, and what was changed and
what was not is said.

| command | what it does |
|---|---|
`)
	commands := slices.Collect(func(yield func(*cobra.Command) bool) { visible(root, yield) })
	for _, c := range commands {
		fmt.Fprintf(&out, "| [`%s`](#%s) | %s |\n", c.CommandPath(), strings.ReplaceAll(c.CommandPath(), " ", "-"), cell(c.Short))
	}
	for _, c := range commands {
		describeCommand(&out, c)
	}
	describeSettings(&out)
	return out.String()
}

// visible walks through all commands that do something.
func visible(parent *cobra.Command, yield func(*cobra.Command) bool) bool {
	for _, c := range parent.Commands() {
		if !c.IsAvailableCommand() || c.Name() == "completion" || c.Name() == "help" {
			continue
		}
		if c.HasSubCommands() {
			if !visible(c, yield) {
				return false
			}
		} else if !yield(c) {
			return false
		}
	}
	return true
}

func describeCommand(out *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(out, "\n## %s\n\n%s\n\n```\n%s\n```\n", c.CommandPath(), prose(c), c.UseLine())
	if c.Example != "" {
		fmt.Fprintf(out, "\nExamples:\n\n```\n%s\n```\n", c.Example)
	}
	var own, shared []string
	c.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		switch {
		case flag.Name == "help" || flag.Hidden:
		case settings.IsSetting(flag):
			shared = append(shared, "`"+flag.Name+"`")
		default:
			own = append(own, fmt.Sprintf("| `--%s` | %s | %s | %s |\n", flag.Name, cell(flag.Value.Type()), preset(flag.Value.String()), cell(flag.Usage)))
		}
	})
	if len(own) > 0 {
		fmt.Fprintf(out, "\n| flag | value | default | |\n|---|---|---|---|\n%s", strings.Join(own, ""))
	}
	if len(shared) > 0 {
		fmt.Fprintf(out, "\n[Settings](#settings): %s.\n", strings.Join(shared, ", "))
	}
}

// prose is what a command says of itself, in lines as they are.
func prose(c *cobra.Command) string {
	if c.Long != "" {
		return c.Long
	}
	return c.Short + "."
}

func describeSettings(out *strings.Builder) {
	out.WriteString(`
## Settings

Each setting is a flag (` + "`--lease-duration 30s`" + `), a variable (` + "`RELAY_LEASE_DURATION`" + `) and a key of the YAML file
that ` + "`--config`" + ` names (` + "`lease-duration: 30s`" + `). Flags win over variables, variables over the file. Unknown keys, flags and
variables ` + "`RELAY_…`" + ` are errors, and all that is wrong is said at once. Durations need a unit. AWS credentials are found
by the SDK's chain, always; other secrets can be [in files](security.md#secrets).
`)
	title := map[settings.Group]string{
		settings.Table: "The table", settings.Brokers: "Kafka", settings.Relay: "The relay",
		settings.Admin: "Admin address and metrics", settings.Log: "Logs",
	}
	last := settings.Group(0)
	for _, s := range settings.Describe() {
		if s.Group != last {
			fmt.Fprintf(out, "\n### %s\n\n| setting | value | default | |\n|---|---|---|---|\n", title[s.Group])
			last = s.Group
		}
		fmt.Fprintf(out, "| `%s`<br>`%s` | %s | %s | %s |\n", s.Name, s.Variable, cell(s.Kind), preset(s.Default), cell(s.Doc))
	}
}

func preset(text string) string {
	if text == "" {
		return ""
	}
	return "`" + cell(text) + "`"
}

// cell keeps a text within its cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
