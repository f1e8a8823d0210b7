package memtable

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// lookup follows the path into the item; nil when it leads nowhere.
func (p path) lookup(on item, nameOf func(string) string) types.AttributeValue {
	value, found := on[nameOf(p[0].name)]
	if !found {
		return nil
	}
	for _, step := range p[1:] {
		if step.name != "" {
			fields, isMap := value.(*types.AttributeValueMemberM)
			if !isMap {
				return nil
			}
			if value, found = fields.Value[nameOf(step.name)]; !found {
				return nil
			}
			continue
		}
		list, isList := value.(*types.AttributeValueMemberL)
		if !isList || step.index >= len(list.Value) {
			return nil
		}
		value = list.Value[step.index]
	}
	return value
}

// resolve replaces the variables of the path by the names they stand for.
func (p path) resolve(b *binding) path {
	resolved := slices.Clone(p)
	for i := range resolved {
		resolved[i].name = b.name(resolved[i].name)
	}
	return resolved
}

func (p path) String() string {
	parts := make([]string, len(p))
	for i, step := range p {
		parts[i] = step.name
		if step.name == "" {
			parts[i] = fmt.Sprintf("[%d]", step.index)
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func comparePaths(p, q path) int {
	return slices.CompareFunc(p, q, func(a, b step) int {
		return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(a.index, b.index))
	})
}

// overlap refuses resolved paths of which one leads through another.
func overlap(paths []path) error {
	for i, p := range paths {
		for _, q := range paths[:i] {
			shared := min(len(p), len(q))
			if slices.Equal(p[:shared], q[:shared]) {
				return &syntaxError{fmt.Sprintf("Two document paths overlap with each other; "+
					"must remove or rewrite one of these paths; path one: %s, path two: %s", q, p)}
			}
		}
	}
	return nil
}

// project copies the parts of the item that the resolved paths lead to.
func project(on item, paths []path) item {
	kept, found := prune(&types.AttributeValueMemberM{Value: on}, paths).(*types.AttributeValueMemberM)
	if !found {
		return item{}
	}
	return kept.Value
}

// prune copies what the paths lead to inside the value, nil when nothing.
// Elements of lists move up into the places of those left out.
func prune(value types.AttributeValue, paths []path) types.AttributeValue {
	if slices.ContainsFunc(paths, func(p path) bool { return len(p) == 0 }) {
		return cloneValue(value)
	}
	switch v := value.(type) {
	case *types.AttributeValueMemberM:
		kept := item{}
		for i, p := range paths {
			name := p[0].name
			child, found := v.Value[name]
			seen := slices.ContainsFunc(paths[:i], func(q path) bool { return q[0].name == name })
			if name == "" || !found || seen {
				continue
			}
			if child = prune(child, below(paths, p[0])); child != nil {
				kept[name] = child
			}
		}
		if len(kept) > 0 {
			return &types.AttributeValueMemberM{Value: kept}
		}
	case *types.AttributeValueMemberL:
		var kept []types.AttributeValue
		for i, element := range v.Value {
			if inside := below(paths, step{index: i}); len(inside) > 0 {
				if element = prune(element, inside); element != nil {
					kept = append(kept, element)
				}
			}
		}
		if len(kept) > 0 {
			return &types.AttributeValueMemberL{Value: kept}
		}
	}
	return nil
}

// below is what remains of the paths that begin with the step.
func below(paths []path, first step) []path {
	var rest []path
	for _, p := range paths {
		if p[0] == first {
			rest = append(rest, p[1:])
		}
	}
	return rest
}

// alter puts a value where the resolved path leads in the attributes, or takes
// away what is there when the value is nil. Containers in them are left as they
// were: changed ones take their places.
func alter(attributes item, p path, value types.AttributeValue) error {
	name := p[0].name
	if len(p) > 1 {
		child, err := changed(attributes[name], p[1:], value)
		if err != nil {
			return err
		}
		value = child
	}
	if value == nil {
		delete(attributes, name)
	} else {
		attributes[name] = value
	}
	return nil
}

// changed is a new container like the old one but for what alter does to it.
func changed(container types.AttributeValue, p path, value types.AttributeValue) (types.AttributeValue, error) {
	switch c := container.(type) {
	case *types.AttributeValueMemberM:
		if p[0].name == "" {
			break
		}
		fields := maps.Clone(c.Value)
		if err := alter(fields, p, value); err != nil {
			return nil, err
		}
		return &types.AttributeValueMemberM{Value: fields}, nil
	case *types.AttributeValueMemberL:
		if p[0].name == "" {
			return changeElement(c.Value, p, value)
		}
	}
	return nil, invalid("The document path provided in the update expression is invalid for update")
}

// changeElement: an index behind the end of the list appends.
func changeElement(list []types.AttributeValue, p path, value types.AttributeValue) (types.AttributeValue, error) {
	copied, at := slices.Clone(list), p[0].index
	switch {
	case len(p) > 1 && at >= len(list):
		return changed(nil, p[1:], value)
	case len(p) > 1:
		child, err := changed(list[at], p[1:], value)
		if err != nil {
			return nil, err
		}
		copied[at] = child
	case value == nil && at < len(list):
		copied = slices.Delete(copied, at, at+1)
	case value != nil && at < len(list):
		copied[at] = value
	case value != nil:
		copied = append(copied, value)
	}
	return &types.AttributeValueMemberL{Value: copied}, nil
}
