package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
)

// complete tells shells what may be written for each flag of a command: the choices of
// those that have some, files where a file is wanted, and nothing for the others, since
// the names of files in this folder would only be in the way.
func complete(cmd *cobra.Command) {
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		choices, files := settings.Completions(flag)
		var completion cobra.CompletionFunc
		switch {
		case len(choices) > 0:
			completion = cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp)
		case files:
			completion = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
		default:
			completion = cobra.NoFileCompletions
		}
		if err := cmd.RegisterFlagCompletionFunc(flag.Name, completion); err != nil {
			panic("complete --" + flag.Name + ": " + err.Error()) // it is there, and only once
		}
	})
}
