package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"go.yaml.in/yaml/v3"

	"github.com/bucketbrigade/relay/cmd/relay/cost"
	"github.com/bucketbrigade/relay/cmd/relay/settings"
)

// prices are what a million units cost. They differ between regions, and change: they
// come from whoever asks, never from the net.
type prices struct {
	read, write float64
	currency    string
	file        string
}

// maxPrice is of a million units.
const maxPrice = 1e6

func pricesArguments(p *prices) []settings.Argument {
	return []settings.Argument{
		{Name: "read-price", Value: settings.Number(&p.read, maxPrice), Doc: "of a million read units; with --write-price costs are shown"},
		{Name: "write-price", Value: settings.Number(&p.write, maxPrice), Doc: "of a million write units"},
		{Name: "currency", Value: settings.Text(&p.currency), Doc: "of these prices, such as USD"},
		{Name: "prices", Value: settings.File(&p.file), Doc: "YAML file with read-price, write-price and currency; the flags win"},
	}
}

// pricesFile is the file's form.
type pricesFile struct {
	Read     *float64 `yaml:"read-price"`
	Write    *float64 `yaml:"write-price"`
	Currency string   `yaml:"currency"`
}

// load takes what the flags have left open from the file. It tells whether there are
// prices.
func (p *prices) load() (known bool, err error) {
	if p.file != "" {
		if err := p.readFile(); err != nil {
			return false, usageErrorf("--prices %q: %w", p.file, err)
		}
	}
	switch {
	case p.read == 0 && p.write == 0 && p.currency == "":
		return false, nil
	case p.read == 0 || p.write == 0:
		return false, usageErrorf("--read-price %v, --write-price %v: give both, or neither", p.read, p.write)
	}
	return true, nil
}

func (p *prices) readFile() error {
	content, err := os.ReadFile(p.file)
	if err != nil {
		return err
	}
	var found pricesFile
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	if err := decoder.Decode(&found); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, one := range []struct {
		name  string
		value *float64
		field *float64
	}{{"read-price", found.Read, &p.read}, {"write-price", found.Write, &p.write}} {
		switch {
		case one.value == nil:
		case !(*one.value > 0 && *one.value <= maxPrice):
			return fmt.Errorf("%s %v: must be a number above 0, at most %v", one.name, *one.value, maxPrice)
		case *one.field == 0:
			*one.field = *one.value
		}
	}
	if p.currency == "" {
		p.currency = found.Currency
	}
	return nil
}

// of is what a line costs, to the hundredth.
func (p *prices) of(l cost.Line) float64 {
	return math.Round((l.Read*p.read+l.Write*p.write)/1e6*100) / 100
}
