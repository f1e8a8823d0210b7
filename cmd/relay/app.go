package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bucketbrigade/relay"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/outbox"
	"github.com/bucketbrigade/relay/simulation"
)

// Exit codes, a contract with scripts.
const (
	exitDone        = 0
	exitFailed      = 1 // failed while running
	exitUsage       = 2 // bad usage or settings; nothing was started
	exitBucketCount = 3 // the table contradicts the settings
)

// app is what the commands share: the edges of the process, each of which a
// test can replace.
type app struct {
	args, environ  []string
	stdin          io.Reader
	stdout, stderr io.Writer
	now            func() time.Time
	pause          func(ctx context.Context, d time.Duration) error
	dial           dialer
	timeout        time.Duration // of a request to the table, for a person who waits
	simulate       func(simulation.Options) simulation.Report
}

// execute runs one command line and returns its exit code. Results are written
// to stdout, logs and complaints to stderr. When ctx ends, the command ends
// gracefully.
func execute(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{args: args, environ: environ, stdin: stdin, stdout: stdout, stderr: stderr,
		now: time.Now, pause: pause, dial: dialDynamoDB, simulate: simulation.Run}
	return a.execute(ctx)
}

func (a *app) execute(ctx context.Context) int {
	printed := &results{Writer: a.stdout}
	a.stdout = printed
	root := a.root()
	root.SetArgs(a.args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	addCobrasOwn(root) // which print to where the root does by now
	err := root.ExecuteContext(ctx)
	if printed.fault != nil && !errors.As(err, new(runError)) { // cobra's own commands return it as it is
		err = runError{fmt.Errorf("print the result: %w", printed.fault)}
	}
	switch {
	case err == nil:
	case ctx.Err() != nil && errors.Is(err, outbox.ErrAmbiguous): // which must be known
		fmt.Fprintf(a.stderr, "relay: interrupted: %v\n", err)
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(a.stderr, "relay: interrupted")
	default:
		fmt.Fprintf(a.stderr, "relay: %v\n", err)
	}
	return exitCode(err)
}

// runError marks what went wrong after a command had begun its work, so that it
// can be told from bad usage, cobra's own complaints included.
type runError struct{ error }

func (e runError) Unwrap() error { return e.error }

// usageError is bad usage that is found only when a command has begun, but
// before it has started anything.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usageErrorf(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func exitCode(err error) int {
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, new(usageError)) || !errors.As(err, new(runError)):
		return exitUsage
	case errors.Is(err, relay.ErrBucketCount):
		return exitBucketCount
	default:
		return exitFailed
	}
}

// variable is the value of a variable of the environment; empty when it is not set.
func (a *app) variable(name string) string {
	for _, entry := range a.environ {
		if value, found := strings.CutPrefix(entry, name+"="); found {
			return value
		}
	}
	return ""
}

func (a *app) root() *cobra.Command {
	return a.group("relay", "Moves outbox messages from a DynamoDB table to Kafka, in order, at least once",
		newRun(a), newDemo(a), newSimulate(a), newStatus(a), newTop(a), newDoctor(a),
		a.group("table", "Sets up the table, shows it, and prints its definitions",
			newTableCreate(a), newTableShow(a), newTableCloudFormation(a), newTableTerraform(a), newTableIAM(a)),
		a.group("message", "Looks at waiting messages, adds one, sets some aside",
			newMessageEnqueue(a), newMessageList(a), newMessagePark(a)),
		a.group("parked", "Looks at what was set aside, delivers it after all, or discards it",
			newParkedList(a), newParkedShow(a), newParkedRetry(a), newParkedDiscard(a)),
		newPause(a), newResume(a),
		a.group("lease", "Looks at the leases of buckets, frees one whose owner is gone",
			newLeaseList(a), newLeaseRelease(a)),
		newCost(a),
		newReference(a), newVersion(a))
}

// addCobrasOwn adds the commands that cobra has itself, which it else does when it
// executes: of these, too, one that is not there is bad usage, not a wish for help.
func addCobrasOwn(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Args, c.RunE, c.SuggestionsMinimumDistance = cobra.ArbitraryArgs, noCommand, root.SuggestionsMinimumDistance
		}
	}
	root.SetHelpCommand(&cobra.Command{
		Use: "help [command]", Short: "Says more about a command",
		RunE: func(_ *cobra.Command, args []string) error {
			found, rest, err := root.Find(args)
			if err == nil && len(rest) > 0 {
				err = noCommand(found, rest)
			}
			if err != nil {
				return err
			}
			found.InitDefaultHelpFlag() // as with --help: the text lists it
			return found.Help()
		},
	})
}

// group is a command that only has subcommands.
func (a *app) group(name, short string, children ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:                        name,
		Short:                      short,
		Args:                       cobra.ArbitraryArgs,
		SilenceErrors:              true,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
		RunE:                       noCommand,
	}
	cmd.SetUsageFunc(usage)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if args := cmd.Flags().Args(); len(args) > 0 {
			return noCommand(cmd, args) // whose flags these are to be
		}
		return noGroupFlag(cmd, err)
	})
	cmd.AddCommand(children...)
	return cmd
}

// noGroupFlag says that a group has no flags but --help. What is a flag elsewhere may be a
// command here: --version.
func noGroupFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	dashes := "--"
	if unknown.GetSpecifiedShortnames() != "" {
		dashes = "-"
	}
	name := unknown.GetSpecifiedName()
	if child, _, err := cmd.Find([]string{name}); err == nil && child != cmd {
		return fmt.Errorf("%s%s: no such flag; there is the command %s", dashes, name, child.CommandPath())
	}
	return fmt.Errorf("%s%s: no such flag of %s; see %s --help", dashes, name, cmd.CommandPath(), cmd.CommandPath())
}

// noCommand says that a group was asked for none of its commands, or for one that it
// does not have.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("which command? see %s --help", cmd.CommandPath())
	}
	text := fmt.Sprintf("%s has no command %q", cmd.CommandPath(), args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += "; the nearest is " + near[0]
	}
	return errors.New(text)
}

// spec describes a command that does something.
type spec struct {
	use, short, long, example string
	groups                    settings.Group
	arguments                 []settings.Argument
	// consent is what the caller has said about changes, by arguments of their own. Nil: the
	// command changes nothing.
	consent *consent
	// check finds faults of the positional arguments, and between arguments.
	// Nil: there must be no positional ones.
	check func(positional []string, flagGiven func(name string) bool) []settings.Fault
	run   func(ctx context.Context, loaded *settings.Loader) error
}

// command makes the command of a spec: all faults of its flags, arguments,
// variables and file are collected and reported together, before run is called.
func (a *app) command(s spec) *cobra.Command {
	cmd := &cobra.Command{
		Use: s.use, Short: s.short, Long: s.long, Example: s.example,
		Args:               cobra.ArbitraryArgs,
		SilenceErrors:      true,
		SilenceUsage:       true,
		FParseErrWhitelist: cobra.FParseErrWhitelist(settings.AllowUnknown),
	}
	cmd.Flags().SortFlags = false
	if s.consent != nil {
		s.arguments = append(s.arguments, consentArguments(s.consent)...)
	}
	loader := settings.NewLoader(cmd.Flags(), s.groups, s.arguments...)
	if s.check == nil {
		s.check = noPositional
	}
	load := func(further ...settings.Fault) error {
		further = append(further, s.check(cmd.Flags().Args(), cmd.Flags().Changed)...)
		return loader.Load(a.args, a.environ, further...)
	}
	complete(cmd)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return load(settings.ParseFault(err)) })
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := load(); err != nil {
			return err
		}
		if err := s.run(cmd.Context(), loader); err != nil {
			if s.consent != nil && errors.As(err, new(outOfPatience)) && !errors.As(err, new(begunError)) {
				err = fmt.Errorf("%w\n  nothing was changed", err)
			}
			return runError{err}
		}
		return nil
	}
	return cmd
}

func noPositional(positional []string, _ func(string) bool) []settings.Fault {
	var faults []settings.Fault
	for _, text := range positional {
		faults = append(faults, settings.Fault{Setting: fmt.Sprintf("%q", text), Detail: ": takes no such argument"})
	}
	return faults
}

// usage prints what cobra prints of a command, with flags wrapped to the 100 columns
// that all our text fits. A template of cobra's would keep each method of every type
// in the binary.
func usage(cmd *cobra.Command) error {
	var text strings.Builder
	part := func(title, body string) { fmt.Fprintf(&text, "\n\n%s:\n%s", title, body) }
	group := cmd.HasAvailableSubCommands()
	if group {
		fmt.Fprintf(&text, "Usage:\n  %s [command]", cmd.CommandPath())
	} else {
		fmt.Fprintf(&text, "Usage:\n  %s", cmd.UseLine())
	}
	if cmd.HasExample() {
		part("Examples", cmd.Example)
	}
	if group {
		var lines []string
		for _, child := range cmd.Commands() {
			if child.IsAvailableCommand() {
				lines = append(lines, fmt.Sprintf("  %-*s %s", child.NamePadding(), child.Name(), child.Short))
			}
		}
		part("Commands", strings.Join(lines, "\n"))
	}
	if cmd.HasAvailableLocalFlags() {
		part("Flags", strings.TrimRightFunc(cmd.LocalFlags().FlagUsagesWrapped(100), unicode.IsSpace))
	}
	if group {
		fmt.Fprintf(&text, "\n\n\"%s [command] --help\" says more about a command.", cmd.CommandPath())
	}
	_, err := fmt.Fprintln(cmd.OutOrStderr(), text.String())
	return err
}
