package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/bucketbrigade/relay/cmd/relay/picture"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/store"
)

// top shows pictures of the table on the whole screen, one after another. It reads
// only. Without a terminal it prints one picture and ends, as status does.
type top struct {
	app      *app
	interval time.Duration
}

func newTop(a *app) *cobra.Command {
	c := &top{app: a, interval: 5 * time.Second}
	return a.command(spec{
		use:   "top",
		short: "Shows the same as status, live, on the whole screen",
		long: "Shows the same as status, live, on the whole screen, to be sorted and filtered; ? lists the keys.\n" +
			"It reads the table only: relays need not run. Each picture costs what status --cost prints, and\n" +
			"the screen says how much. While the table is slow or fails, the last picture stays, with its age.\n" +
			"Without a terminal, one picture is printed.",
		example: "  relay top --table orders --interval 2s",
		groups:  settings.Table | settings.Picture,
		arguments: []settings.Argument{
			{Name: "interval", Value: settings.Duration(&c.interval), Doc: "between the end of one picture and the next"},
			a.timeoutArgument(),
		},
		run: c.run,
	})
}

const (
	// pictureTimeout is after which a picture is given up for the next one: far more
	// than one takes of a table that answers.
	pictureTimeout = 30 * time.Second
	// topTick is how often the age on the screen changes.
	topTick = time.Second
)

func (c *top) run(ctx context.Context, loaded *settings.Loader) error {
	s := &loaded.Settings
	client, err := c.app.client(ctx, s)
	if err != nil {
		return err
	}
	stdin, stdout, interactive := c.app.terminal()
	if !interactive {
		return (&status{app: c.app, output: formatText}).show(ctx, s, client)
	}
	return c.live(ctx, s, client, stdin, stdout)
}

// terminal is where a person looks and types; interactive tells whether there is one.
func (a *app) terminal() (stdin, stdout *os.File, interactive bool) {
	out := a.stdout
	if printed, wraps := out.(*results); wraps {
		out = printed.Writer
	}
	stdin, _ = a.stdin.(*os.File)
	stdout, _ = out.(*os.File)
	return stdin, stdout, stdin != nil && stdout != nil && isTerminal(stdin) && isTerminal(stdout)
}

// live runs the screen until it is quit or ctx ends, which is a way to quit too.
// Afterwards the terminal is as it was, and no request is under way.
func (c *top) live(ctx context.Context, s *settings.Settings, client *store.Client, stdin, stdout *os.File) error {
	ctx, cancel := context.WithCancel(ctx)
	// Commands hold it for reading while they run: the program does not wait for them.
	var under sync.RWMutex
	defer under.Lock()
	defer cancel()
	model := topModel{
		table: s.Relay.Table, interval: c.interval, now: c.app.now(), sort: sortConcern, chosenBucket: noBucket,
		take: func() tea.Msg {
			if !under.TryRLock() {
				return nil // it is over
			}
			defer under.RUnlock()
			within, done := context.WithTimeout(ctx, pictureTimeout)
			defer done()
			p, err := picture.Take(within, client, c.app.pictureOptions(s))
			if err != nil {
				err = advised(err, s)
			}
			return pictureTaken{picture: p, err: err, at: c.app.now()}
		},
		tick: func() tea.Msg {
			if !under.TryRLock() {
				return nil
			}
			defer under.RUnlock()
			if c.app.pause(ctx, topTick) != nil {
				return nil
			}
			return ticked{c.app.now()}
		},
	}
	// Signals end ctx (untilSignalled); the program must not take them away.
	program := tea.NewProgram(model, tea.WithInput(stdin), tea.WithOutput(stdout), tea.WithEnvironment(c.app.environ),
		tea.WithoutSignalHandler())
	defer context.AfterFunc(ctx, program.Quit)()
	if _, err := program.Run(); err != nil {
		return fmt.Errorf("show the screen: %w", err)
	}
	return nil
}
