package memtable

import (
	"fmt"
	"slices"
	"strconv"
)

// parser walks the tokens of one expression. The grammars are recursive
// descents over it: conditions (condition_parser.go), updates
// (update_parser.go) and projections (below).
type parser struct {
	text   string
	tokens []token
	uses   uses
	// attributes are the names that paths begin with, as written.
	attributes []string
}

// uses lists the variables of an expression, each once, in the order of
// their appearance.
type uses struct{ names, values []string }

func newParser(text string) (*parser, error) {
	tokens, err := tokenize(text)
	if err != nil {
		return nil, err
	}
	return &parser{text: text, tokens: tokens}, nil
}

func (p *parser) peek() token { return p.tokens[0] }

// next consumes a token; the end is never consumed.
func (p *parser) next() token {
	t := p.tokens[0]
	if t.kind != endToken {
		p.tokens = p.tokens[1:]
	}
	return t
}

// accept consumes the symbol or keyword if it is what comes next.
func (p *parser) accept(text string) bool {
	if !p.peek().is(text) {
		return false
	}
	p.next()
	return true
}

func (p *parser) expect(text string) error {
	if !p.accept(text) {
		return p.unexpected()
	}
	return nil
}

func (p *parser) unexpected() error { return unexpected(p.text, p.peek()) }

// step is one part of a document path: a field, by its name or a variable
// for it, or a list index.
type step struct {
	name  string
	index int // of a list, when name is empty
}

// path leads to an attribute or into one. As parsed its names may be
// variables; a binding resolves them.
type path []step

func (p *parser) path() (path, error) {
	first, err := p.field()
	if err != nil {
		return nil, err
	}
	p.attributes = append(p.attributes, first.name)
	whole := path{first}
	for {
		switch {
		case p.accept("."):
			field, err := p.field()
			if err != nil {
				return nil, err
			}
			whole = append(whole, field)
		case p.accept("["):
			if p.peek().kind != indexToken {
				return nil, p.unexpected()
			}
			index, err := strconv.Atoi(p.next().text)
			if err != nil {
				return nil, &syntaxError{"List index is not within the allowable range"}
			}
			if err := p.expect("]"); err != nil {
				return nil, err
			}
			whole = append(whole, step{index: index})
		default:
			return whole, nil
		}
	}
}

func (p *parser) field() (step, error) {
	switch t := p.peek(); t.kind {
	case nameToken:
		p.next()
		p.uses.names = appendNew(p.uses.names, t.text)
		return step{name: t.text}, nil
	case wordToken:
		if reserved(t.text) {
			return step{}, &syntaxError{fmt.Sprintf("Attribute name is a reserved keyword; reserved keyword: %s", t.text)}
		}
		p.next()
		return step{name: t.text}, nil
	}
	return step{}, p.unexpected()
}

func (p *parser) value() (variable, error) {
	if p.peek().kind != valueToken {
		return "", p.unexpected()
	}
	t := p.next()
	p.uses.values = appendNew(p.uses.values, t.text)
	return variable(t.text), nil
}

func appendNew(list []string, text string) []string {
	if slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}

// projection is a parsed ProjectionExpression.
type projection struct {
	paths []path
	uses  uses
}

func parseProjection(text string) (*projection, error) {
	p, err := newParser(text)
	if err != nil {
		return nil, err
	}
	parsed := &projection{}
	for {
		one, err := p.path()
		if err != nil {
			return nil, err
		}
		parsed.paths = append(parsed.paths, one)
		if !p.accept(",") {
			break
		}
	}
	if p.peek().kind != endToken {
		return nil, p.unexpected()
	}
	parsed.uses = p.uses
	return parsed, nil
}
