package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/bucketbrigade/relay/simulation"
)

// fileOf is the name of one seed's file: as it was given, or, when there are
// several seeds, with the seed before its extension.
func (c *simulate) fileOf(name string, seed uint64) string {
	if c.seeds.count() == 1 {
		return name
	}
	extension := filepath.Ext(name)
	return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, extension), seed, extension)
}

// makeFiles finds out whether the files of a seed can be written, before
// anything runs.
func (c *simulate) makeFiles(seed uint64) error {
	faults := []error{c.makeShrunk(seed)}
	for _, f := range []struct{ flag, name string }{{"timeline", c.timeline}, {"trace", c.trace}} {
		if f.name == "" {
			continue
		}
		file, err := os.Create(c.fileOf(f.name, seed))
		if err != nil {
			faults = append(faults, fmt.Errorf("--%s: %w", f.flag, err))
			continue
		}
		faults = append(faults, file.Close())
	}
	return errors.Join(faults...)
}

// observers write down one run.
type observers struct {
	timeline     *simulation.Timeline // nil: none
	timelineName string

	trace  *os.File // nil: none
	lines  *bufio.Writer
	failed error // the first of the lines
}

func (c *simulate) observers(seed uint64, o simulation.Options) (*observers, error) {
	w := &observers{}
	if c.timeline != "" {
		w.timeline, w.timelineName = simulation.NewTimeline(o), c.fileOf(c.timeline, seed)
	}
	if c.trace != "" {
		file, err := os.Create(c.fileOf(c.trace, seed))
		if err != nil {
			return nil, fmt.Errorf("write the trace: %w", err)
		}
		w.trace, w.lines = file, bufio.NewWriter(file)
	}
	return w, nil
}

// observe is what the run is to tell; nil when nobody listens.
func (w *observers) observe() func(simulation.Event) {
	if w.timeline == nil && w.trace == nil {
		return nil
	}
	return func(e simulation.Event) {
		if w.timeline != nil {
			w.timeline.Observe(e)
		}
		if w.trace != nil && w.failed == nil {
			w.failed = w.writeLine(e)
		}
	}
}

func (w *observers) writeLine(e simulation.Event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = w.lines.Write(append(line, '\n'))
	return err
}

// finish completes the files.
func (w *observers) finish(r simulation.Report) error {
	var err error
	if w.trace != nil {
		if err = errors.Join(w.failed, w.lines.Flush(), w.trace.Close()); err != nil {
			err = fmt.Errorf("write the trace: %w", err)
		}
	}
	if w.timeline != nil {
		err = errors.Join(err, w.draw(r))
	}
	return err
}

func (w *observers) draw(r simulation.Report) error {
	file, err := os.Create(w.timelineName)
	if err != nil {
		return fmt.Errorf("draw the timeline: %w", err)
	}
	if err := errors.Join(w.timeline.Write(file, r), file.Close()); err != nil {
		return fmt.Errorf("draw the timeline: %w", err)
	}
	return nil
}
