package settings

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
	"go.yaml.in/yaml/v3"
)

// loadFile is the layer of --config FILE. What is wrong with the file itself is
// a fault of config; what is wrong in it, of the setting concerned.
func (l *Loader) loadFile(layers *koanf.Koanf, path string) {
	content, err := os.ReadFile(path)
	if err != nil {
		l.fault(wrong(configFlag, given{Text: path, Origin: "--" + configFlag}, fmt.Errorf("cannot be read: %w", WithoutPath(err))))
		return
	}
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		l.fault(wrong(configFlag, given{Text: path, Origin: "--" + configFlag}, yamlProblem(err)))
		return
	}
	if len(document.Content) == 0 {
		return // an empty file
	}
	top := document.Content[0]
	if top.Kind != yaml.MappingNode {
		l.fault(wrong(configFlag, given{Text: path, Origin: "--" + configFlag}, errors.New("must be a map from settings to values")))
		return
	}
	r := fileReader{loader: l, base: filepath.Base(path)}
	l.load(layers, confmap.Provider(r.settings(top), ""))
}

// yamlProblem keeps of the library's text what cannot repeat content: an alias
// that does not exist may be a password that begins with "*".
func yamlProblem(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if regexp.MustCompile(`anchor|alias`).MatchString(text) {
		text = "a value that begins with * or & needs quotes"
	}
	return errors.New("is not valid YAML: " + text)
}

// fileReader reads the nodes of a file. It takes each value as it is written,
// not as YAML's types: a relay-id of 0123 is not the number 83.
type fileReader struct {
	loader *Loader
	base   string // the file's name, for origins
}

func (r *fileReader) origin(n *yaml.Node) string { return fmt.Sprintf("%s:%d", r.base, n.Line) }

func (r *fileReader) settings(top *yaml.Node) map[string]any {
	known := rowNames()
	layer := map[string]any{}
	for key, value := range r.pairs(top) {
		g := given{Origin: r.origin(key)}
		switch {
		case !slices.Contains(known, key.Value):
			g.Text, _ = plainText(value)
			r.loader.fault(unknown(key.Value, g, "setting", nearest(key.Value, known)))
		case key.Value == kafkaSetting:
			layer[kafkaSetting] = r.properties(value, g.Origin)
		default:
			text, ok := plainText(value)
			if !ok {
				r.loader.fault(Fault{Setting: key.Value, Detail: ": must be one value", Origin: g.Origin})
				continue
			}
			layer[key.Value] = given{Text: text, Origin: g.Origin}
		}
	}
	return layer
}

func (r *fileReader) properties(node *yaml.Node, origin string) map[string]any {
	properties := map[string]any{}
	if node.Kind != yaml.MappingNode {
		r.loader.fault(Fault{Setting: kafkaSetting, Detail: ": must be a map from librdkafka properties to values", Origin: origin})
		return properties
	}
	for key, value := range r.pairs(node) {
		text, ok := plainText(value)
		if !ok {
			r.loader.fault(Fault{Setting: kafkaSetting + "." + key.Value, Detail: ": must be one value; write the property's name with its dots",
				Origin: r.origin(key)})
			continue
		}
		properties[key.Value] = given{Text: text, Origin: r.origin(key)}
	}
	return properties
}

// pairs walks through the keys and values of a map, and reports keys that
// occur twice, of which YAML would silently take one.
func (r *fileReader) pairs(node *yaml.Node) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		lines := map[string]int{}
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, value := node.Content[i], node.Content[i+1]
			if line, twice := lines[key.Value]; twice {
				r.loader.fault(Fault{Setting: key.Value, Detail: fmt.Sprintf(": is set in line %d already", line), Origin: r.origin(key)})
				continue
			}
			lines[key.Value] = key.Line
			if value.Kind == yaml.AliasNode {
				value = value.Alias
			}
			if !yield(key, value) {
				return
			}
		}
	}
}

// plainText is a scalar as it is written, or a list of scalars joined by
// commas.
func plainText(node *yaml.Node) (text string, ok bool) {
	switch node.Kind {
	case yaml.ScalarNode:
		return node.Value, true
	case yaml.SequenceNode:
		var items []string
		for _, item := range node.Content {
			if item.Kind != yaml.ScalarNode {
				return "", false
			}
			items = append(items, item.Value)
		}
		return strings.Join(items, ","), true
	default:
		return "", false
	}
}
