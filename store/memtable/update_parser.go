package memtable

import (
	"fmt"
	"slices"
	"strings"
)

// parsedUpdate is an UpdateExpression.
type parsedUpdate struct {
	actions []action
	uses    uses
}

type actionKind int

const (
	setAction actionKind = iota
	removeAction
	addAction
)

// action changes what one path leads to.
type action struct {
	kind   actionKind
	target path
	value  updateValue // nil for removeAction
}

// parseUpdate reads SET, REMOVE and ADD sections, each at most once, in any
// order. DELETE, and ADD to a set, are not served: no item of the relay has a set.
func parseUpdate(text string) (*parsedUpdate, error) {
	p, err := newParser(text)
	if err != nil {
		return nil, err
	}
	parsed := &parsedUpdate{}
	var seen []string
	for p.peek().kind != endToken {
		section := strings.ToUpper(p.peek().text)
		if slices.Contains(seen, section) {
			return nil, &syntaxError{fmt.Sprintf("The %q section can only be used once in an update expression;", section)}
		}
		parse, known := map[string]func(*parser) (action, error){
			"SET":    (*parser).set,
			"REMOVE": (*parser).remove,
			"ADD":    (*parser).add,
		}[section]
		if section == "DELETE" {
			return nil, unserved("DELETE in an update expression")
		}
		if !known {
			return nil, p.unexpected()
		}
		seen = append(seen, section)
		p.next()
		for {
			one, err := parse(p)
			if err != nil {
				return nil, err
			}
			parsed.actions = append(parsed.actions, one)
			if !p.accept(",") {
				break
			}
		}
	}
	parsed.uses = p.uses
	return parsed, nil
}

func (p *parser) remove() (action, error) {
	target, err := p.path()
	return action{kind: removeAction, target: target}, err
}

func (p *parser) add() (action, error) {
	target, err := p.path()
	if err != nil {
		return action{}, err
	}
	value, err := p.value()
	return action{kind: addAction, target: target, value: plain{value}}, err
}

// set := path "=" term [("+" | "-") term]
func (p *parser) set() (action, error) {
	target, err := p.path()
	if err != nil {
		return action{}, err
	}
	if err := p.expect("="); err != nil {
		return action{}, err
	}
	value, err := p.term()
	if err != nil {
		return action{}, err
	}
	if sign := p.peek(); sign.is("+") || sign.is("-") {
		p.next()
		right, err := p.term()
		if err != nil {
			return action{}, err
		}
		value = arithmetic{sign.text, value, right}
	}
	return action{kind: setAction, target: target, value: value}, nil
}

// term := path | :value | if_not_exists "(" path "," term ")" | list_append "(" term "," term ")"
func (p *parser) term() (updateValue, error) {
	t := p.peek()
	if t.kind == valueToken {
		value, err := p.value()
		return plain{value}, err
	}
	if t.kind != wordToken || len(p.tokens) < 2 || !p.tokens[1].is("(") {
		source, err := p.path()
		return plain{source}, err
	}
	p.next()
	p.next()
	switch t.text {
	case "if_not_exists":
		source, err := p.path()
		if err != nil {
			return nil, err
		}
		fallback, err := p.secondTerm()
		return ifNotExists{source, fallback}, err
	case "list_append":
		first, err := p.term()
		if err != nil {
			return nil, err
		}
		second, err := p.secondTerm()
		return listAppend{first, second}, err
	}
	return nil, &syntaxError{fmt.Sprintf("Invalid function name; function: %s", t.text)}
}

// secondTerm := "," term ")"
func (p *parser) secondTerm() (updateValue, error) {
	if err := p.expect(","); err != nil {
		return nil, err
	}
	value, err := p.term()
	if err != nil {
		return nil, err
	}
	return value, p.expect(")")
}
