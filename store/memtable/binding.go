package memtable

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// maxParsed bounds a cache of parsed expressions; a full one begins anew.
const maxParsed = 1024

// cache keeps parsed expressions by their text: the relay sends the same few
// over and over.
type cache[E any] struct {
	parse  func(text string) (E, error)
	parsed map[string]E
}

func (c *cache[E]) get(text string) (E, error) {
	if e, found := c.parsed[text]; found {
		return e, nil
	}
	e, err := c.parse(text)
	if err != nil {
		return e, err
	}
	if c.parsed == nil || len(c.parsed) >= maxParsed {
		c.parsed = make(map[string]E)
	}
	c.parsed[text] = e
	return e, nil
}

// expressions are the caches of a DB.
type expressions struct {
	conditions  cache[*parsedCondition]
	updates     cache[*parsedUpdate]
	projections cache[*projection]
}

func newExpressions() expressions {
	return expressions{
		conditions:  cache[*parsedCondition]{parse: parseCondition},
		updates:     cache[*parsedUpdate]{parse: parseUpdate},
		projections: cache[*projection]{parse: parseProjection},
	}
}

// binding joins the expressions of one request with its names and values, and
// sees to it that both fit together exactly.
type binding struct {
	parsed *expressions
	names  map[string]string
	values item
	used   []uses
}

func (db *DB) bind(names map[string]string, values map[string]types.AttributeValue) (*binding, error) {
	if names != nil && len(names) == 0 {
		return nil, invalid("ExpressionAttributeNames must not be empty")
	}
	if values != nil && len(values) == 0 {
		return nil, invalid("ExpressionAttributeValues must not be empty")
	}
	if bad := keysOf(names, func(key string) bool { return !isVariable(key, '#') || names[key] == "" }); len(bad) > 0 {
		return nil, invalid("ExpressionAttributeNames contains invalid key: Syntax error; key: %q", bad[0])
	}
	if bad := keysOf(values, func(key string) bool { return !isVariable(key, ':') }); len(bad) > 0 {
		return nil, invalid("ExpressionAttributeValues contains invalid key: Syntax error; key: %q", bad[0])
	}
	b := &binding{parsed: &db.parsed, names: names}
	if values != nil {
		admitted, err := admit(values)
		if err != nil {
			return nil, invalid("ExpressionAttributeValues contains invalid value: %s", messageOf(err))
		}
		b.values = admitted
	}
	return b, nil
}

func isVariable(text string, mark byte) bool {
	return len(text) > 1 && text[0] == mark && spanWord(text, 1) == len(text)
}

// name is what a name in an expression stands for.
func (b *binding) name(name string) string {
	if strings.HasPrefix(name, "#") {
		return b.names[name]
	}
	return name
}

// condition parses the parameter's text, nil for none.
func (b *binding) condition(parameter string, text *string) (condition, error) {
	if text == nil {
		return nil, nil
	}
	parsed, err := b.parsed.conditions.get(*text)
	if err == nil {
		if err = b.use(parsed.uses); err == nil {
			err = parsed.root.check(b)
		}
	}
	if err != nil {
		return nil, inParameter(parameter, err)
	}
	return parsed.root, nil
}

// projection parses a ProjectionExpression into resolved paths, nil for none.
func (b *binding) projection(text *string) ([]path, error) {
	if text == nil {
		return nil, nil
	}
	parsed, err := b.parsed.projections.get(*text)
	if err == nil {
		err = b.use(parsed.uses)
	}
	if err != nil {
		return nil, inParameter("ProjectionExpression", err)
	}
	paths := b.resolve(parsed.paths)
	if err := overlap(paths); err != nil {
		return nil, inParameter("ProjectionExpression", err)
	}
	return paths, nil
}

func (b *binding) resolve(paths []path) []path {
	resolved := make([]path, len(paths))
	for i, p := range paths {
		resolved[i] = p.resolve(b)
	}
	return resolved
}

// use notes the variables of an expression and refuses undefined ones.
func (b *binding) use(u uses) error {
	b.used = append(b.used, u)
	for _, name := range u.names {
		if _, defined := b.names[name]; !defined {
			return &syntaxError{"An expression attribute name used in the document path is not defined; attribute name: " + name}
		}
	}
	for _, value := range u.values {
		if _, defined := b.values[value]; !defined {
			return &syntaxError{"An expression attribute value used in expression is not defined; attribute value: " + value}
		}
	}
	return nil
}

// complete refuses names and values that no expression used. To be called
// once, after the last expression was parsed.
func (b *binding) complete() error {
	if len(b.used) == 0 {
		switch {
		case b.names != nil:
			return invalid("ExpressionAttributeNames can only be specified when using expressions")
		case b.values != nil:
			return invalid("ExpressionAttributeValues can only be specified when using expressions")
		}
		return nil
	}
	if unused := keysOf(b.names, func(key string) bool { return !b.usesName(key) }); len(unused) > 0 {
		return invalid("Value provided in ExpressionAttributeNames unused in expressions: keys: {%s}", strings.Join(unused, ", "))
	}
	if unused := keysOf(b.values, func(key string) bool { return !b.usesValue(key) }); len(unused) > 0 {
		return invalid("Value provided in ExpressionAttributeValues unused in expressions: keys: {%s}", strings.Join(unused, ", "))
	}
	return nil
}

func (b *binding) usesName(name string) bool {
	return slices.ContainsFunc(b.used, func(u uses) bool { return slices.Contains(u.names, name) })
}

func (b *binding) usesValue(value string) bool {
	return slices.ContainsFunc(b.used, func(u uses) bool { return slices.Contains(u.values, value) })
}

// keysOf is the keys of which something is true, in ascending order.
func keysOf[V any](m map[string]V, holds func(key string) bool) []string {
	var keys []string
	for key := range m {
		if holds(key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// inParameter names the parameter that an expression's error is about.
func inParameter(parameter string, err error) error {
	var syntax *syntaxError
	if errors.As(err, &syntax) {
		return invalid("Invalid %s: %s", parameter, syntax.message)
	}
	return err
}

func messageOf(err error) string {
	if api, ok := err.(interface{ ErrorMessage() string }); ok {
		return api.ErrorMessage()
	}
	return fmt.Sprint(err)
}
