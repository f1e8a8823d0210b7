package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	"github.com/bucketbrigade/relay/simulation"
)

// shrunk is the smallest run found of a seed that broke a promise.
type shrunk struct {
	simulation.Shrunk
	file string // the scenario that was written
}

// shrinker is simulation.Shrink, or stands for it.
type shrinker func(context.Context, simulation.Options, simulation.ShrinkConfig) (simulation.Shrunk, error)

// smaller looks for the smallest run that breaks the promise that a seed broke,
// and writes it as a scenario. When ctx ends it writes the smallest of so far.
func (c *simulate) smaller(ctx context.Context, r simulated) (shrunk, error) {
	progress := c.progress(r.options.Seed)
	found, err := c.shrinker(ctx, r.options, simulation.ShrinkConfig{Each: c.atOnce, Progress: progress.tell})
	progress.end()
	if err != nil && ctx.Err() == nil {
		return shrunk{}, fmt.Errorf("shrink seed %d: %w", r.options.Seed, err)
	}
	s := shrunk{found, c.fileOf(c.shrink, r.options.Seed)}
	file, err := os.Create(s.file)
	if err != nil {
		return shrunk{}, fmt.Errorf("write the shrunk run: %w", err)
	}
	if err := errors.Join(found.WriteScenario(file), file.Close()); err != nil {
		return shrunk{}, fmt.Errorf("write the shrunk run: %w", err)
	}
	return s, nil
}

// atOnce does as much at a time as --parallel says.
func (c *simulate) atOnce(n int, do func(i int)) {
	var next atomic.Int64
	var doing sync.WaitGroup
	for range min(n, c.parallel) {
		doing.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				do(int(i))
			}
		})
	}
	doing.Wait()
}

// shrinkProgress is one line on a terminal, written again and again.
type shrinkProgress struct {
	command *simulate
	seed    uint64
	shown   bool // on a terminal
}

func (c *simulate) progress(seed uint64) *shrinkProgress {
	return &shrinkProgress{command: c, seed: seed, shown: isTerminal(c.app.stderr)}
}

// eraseLine goes back to the line's beginning, and empties it.
const eraseLine = "\r\x1b[K"

func (p *shrinkProgress) tell(s simulation.Shrunk) {
	if p.shown {
		fmt.Fprint(p.command.app.stderr, eraseLine,
			shortened(fmt.Sprintf("shrinking seed %d: %d runs, %v", p.seed, s.Runs, s.After), textColumns))
	}
}

func (p *shrinkProgress) end() {
	if p.shown {
		fmt.Fprint(p.command.app.stderr, eraseLine)
	}
}

// replay is the command that plays the scenario.
func (s shrunk) replay() string { return "relay simulate --scenario " + shellWord(s.file) }

// makeShrunk finds out whether the file of a shrunk seed can be written. No
// promise may be broken, so nothing is left of that.
func (c *simulate) makeShrunk(seed uint64) error {
	if c.shrink == "" {
		return nil
	}
	name := c.fileOf(c.shrink, seed)
	_, err := os.Stat(name)
	isNew := errors.Is(err, fs.ErrNotExist)
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return fmt.Errorf("--shrink: %w", err)
	}
	if err := file.Close(); err != nil || !isNew {
		return err
	}
	return os.Remove(name)
}
