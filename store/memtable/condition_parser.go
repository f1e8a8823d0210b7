package memtable

import (
	"fmt"
	"slices"
)

// parsedCondition is a condition, key condition or filter expression.
type parsedCondition struct {
	root       condition
	uses       uses
	attributes []string // that it looks at, as written
}

// functions of conditions, with their number of arguments.
var conditionFunctions = map[string]int{
	"attribute_exists":     1,
	"attribute_not_exists": 1,
	"attribute_type":       2,
	"begins_with":          2,
	"contains":             2,
}

func parseCondition(text string) (*parsedCondition, error) {
	p, err := newParser(text)
	if err != nil {
		return nil, err
	}
	root, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.peek().kind != endToken {
		return nil, p.unexpected()
	}
	return &parsedCondition{root: root, uses: p.uses, attributes: p.attributes}, nil
}

// or := and { OR and }
func (p *parser) or() (condition, error) {
	left, err := p.and()
	for err == nil && p.accept("OR") {
		var right condition
		if right, err = p.and(); err == nil {
			left = &either{left, right}
		}
	}
	return left, err
}

// and := not { AND not }
func (p *parser) and() (condition, error) {
	left, err := p.not()
	for err == nil && p.accept("AND") {
		var right condition
		if right, err = p.not(); err == nil {
			left = &both{left, right}
		}
	}
	return left, err
}

// not := NOT not | primary
func (p *parser) not() (condition, error) {
	if !p.accept("NOT") {
		return p.primary()
	}
	inner, err := p.not()
	return &negation{inner}, err
}

// primary := "(" or ")" | function | comparison
func (p *parser) primary() (condition, error) {
	if p.peek().is("(") {
		return p.parenthesized()
	}
	if t := p.peek(); t.kind == wordToken && len(p.tokens) > 1 && p.tokens[1].is("(") && t.text != "size" {
		return p.function()
	}
	return p.comparison()
}

// parenthesized refuses "((a))" as the service does.
func (p *parser) parenthesized() (condition, error) {
	p.next()
	doubled := p.peek().is("(")
	before := p.tokens
	inner, err := p.or()
	if err != nil {
		return nil, err
	}
	if err := p.expect(")"); err != nil {
		return nil, err
	}
	if doubled && closes(before) == len(before)-len(p.tokens)-2 {
		return nil, &syntaxError{"The expression has redundant parentheses;"}
	}
	return inner, nil
}

// closes is the position of the parenthesis that closes the first token.
func closes(tokens []token) int {
	depth := 0
	return slices.IndexFunc(tokens, func(t token) bool {
		switch {
		case t.is("("):
			depth++
		case t.is(")"):
			depth--
		}
		return depth == 0
	})
}

func (p *parser) function() (condition, error) {
	name := p.next().text
	count, known := conditionFunctions[name]
	if !known {
		return nil, &syntaxError{fmt.Sprintf("Invalid function name; function: %s", name)}
	}
	arguments, err := p.arguments()
	if err != nil {
		return nil, err
	}
	if len(arguments) != count {
		return nil, &syntaxError{fmt.Sprintf(
			"Incorrect number of operands for operator or function; operator or function: %s, number of operands: %d",
			name, len(arguments))}
	}
	if name == "begins_with" {
		return &beginsWith{arguments[0], arguments[1]}, nil
	}
	if name == "contains" {
		return &contains{arguments[0], arguments[1]}, nil
	}
	subject, isPath := arguments[0].(path)
	if !isPath {
		return nil, &syntaxError{fmt.Sprintf("Operator or function requires a document path; operator or function: %s", name)}
	}
	switch name {
	case "attribute_exists":
		return &exists{subject}, nil
	case "attribute_not_exists":
		return &negation{&exists{subject}}, nil
	}
	return &typeIs{subject, arguments[1]}, nil
}

func (p *parser) arguments() ([]operand, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	var list []operand
	for {
		one, err := p.operand()
		if err != nil {
			return nil, err
		}
		list = append(list, one)
		if !p.accept(",") {
			return list, p.expect(")")
		}
	}
}

// comparison := operand (comparator operand | BETWEEN operand AND operand | IN "(" operand {"," operand} ")")
func (p *parser) comparison() (condition, error) {
	left, err := p.operand()
	if err != nil {
		return nil, err
	}
	if p.accept("BETWEEN") {
		low, err := p.operand()
		if err != nil {
			return nil, err
		}
		if err := p.expect("AND"); err != nil {
			return nil, err
		}
		high, err := p.operand()
		return &between{left, low, high}, err
	}
	if p.accept("IN") {
		list, err := p.arguments()
		return &oneOf{left, list}, err
	}
	t := p.peek()
	switch t.text {
	case "=", "<>", "<", "<=", ">", ">=":
		p.next()
		right, err := p.operand()
		return &comparison{t.text, left, right}, err
	}
	return nil, p.unexpected()
}

// operand := path | :value | size "(" path ")"
func (p *parser) operand() (operand, error) {
	t := p.peek()
	if t.kind == valueToken {
		return p.value()
	}
	if t.text == "size" && len(p.tokens) > 1 && p.tokens[1].is("(") {
		p.next()
		p.next()
		subject, err := p.path()
		if err != nil {
			return nil, err
		}
		return sizeOf{subject}, p.expect(")")
	}
	return p.path()
}
