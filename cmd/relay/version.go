package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
)

// versionCommand says which build this is.
type versionCommand struct {
	app    *app
	output format
}

func newVersion(a *app) *cobra.Command {
	c := &versionCommand{app: a}
	return a.command(spec{
		use:       "version",
		short:     "Says which build this is",
		arguments: []settings.Argument{outputArgument(&c.output)},
		run:       c.run,
	})
}

// versionDocument is the JSON of the command.
type versionDocument struct {
	Version  string `json:"version"`  // the module's version; "(devel)" of a working tree
	Revision string `json:"revision"` // the commit; empty when it is not known
	Modified bool   `json:"modified"` // the working tree had changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (c *versionCommand) run(context.Context, *settings.Loader) error {
	v := buildVersion()
	if c.output == formatJSON {
		return printJSON(c.app.stdout, v)
	}
	fmt.Fprintf(c.app.stdout, "relay %s", v.Version)
	if v.Revision != "" {
		fmt.Fprintf(c.app.stdout, ", commit %.12s", v.Revision)
	}
	if v.Modified {
		fmt.Fprint(c.app.stdout, " with changes")
	}
	fmt.Fprintf(c.app.stdout, ", %s, %s\n", v.Go, v.Platform)
	return nil
}

func buildVersion() versionDocument {
	v := versionDocument{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
