package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

// Argument is a flag of one command that is no setting: it has no variable and
// no key in the file, and its name may differ in meaning between commands.
type Argument struct {
	Name  string
	Value Value // holds the default
	Doc   string
	// Required is why it must be given; empty when it need not be.
	Required string
	// Content: its text is a message's. What is unknown on such a command line may be
	// that flag, misspelled, so that the faults repeat none of it.
	Content bool
}

// Loader reads the settings and arguments of one command.
type Loader struct {
	Settings  Settings // holds what was read after Load
	groups    Group
	arguments []Argument
	flags     *pflag.FlagSet
	faults    Faults
	origins   map[string]string // setting → where its value came from
}

// given is a value as it was written, and where. It is what the layers hold;
// its fields are exported since koanf copies no others.
type given struct {
	Text, Origin string
	Hidden       bool // whatever its name, the text is not to be repeated
}

// delimiter separates a map's name from its keys in koanf's flat names. It
// must occur in no setting's name, and the names of Kafka properties have dots.
const delimiter = "/"

// NewLoader adds the flags of the groups' settings and of the arguments to
// flags, which the caller parses.
func NewLoader(flags *pflag.FlagSet, groups Group, arguments ...Argument) *Loader {
	l := &Loader{
		Settings:  Defaults(),
		groups:    groups,
		arguments: arguments,
		flags:     flags,
		origins:   map[string]string{},
	}
	l.addFlags()
	return l
}

// Load reads all layers, after the flags were parsed from args. Further are
// faults that the caller found itself; they are reported with the others. The
// error is a Faults.
func (l *Loader) Load(args, environ []string, further ...Fault) error {
	l.faults = append(Faults(nil), further...)
	l.faults = append(l.faults, l.unknownFlags(args)...)
	l.readArguments()
	if l.groups != 0 {
		l.readSettings(environ)
		l.validate()
	}
	if len(l.faults) > 0 {
		return l.faults
	}
	return nil
}

// Origin is where the value of a setting came from: a flag, a variable, or a
// file and line; empty for a default.
func (l *Loader) Origin(name string) string { return l.origins[name] }

// HasFile tells whether a file of settings was named.
func (l *Loader) HasFile() bool { return lastFlagText(l.flags, configFlag) != "" }

// isFaulty tells whether something is wrong with a flag already, such as that it has no
// value: that it is missing, too, would be said of what was meant.
func (l *Loader) isFaulty(flag string) bool {
	return slices.ContainsFunc(l.faults, func(f Fault) bool { return f.Setting == flag })
}

func (l *Loader) fault(f Fault) { l.faults = append(l.faults, f) }

func (l *Loader) readArguments() {
	for _, a := range l.arguments {
		texts := flagTexts(l.flags, a.Name)
		for _, text := range texts {
			if err := a.Value.Set(text); err != nil {
				l.fault(wrong("--"+a.Name, given{Text: text, Hidden: a.Content}, err))
			}
		}
		if len(texts) == 0 && a.Required != "" && !l.isFaulty("--"+a.Name) {
			l.fault(Fault{Setting: "--" + a.Name, Detail: ": " + a.Required})
		}
	}
}

// readSettings merges the layers, each over those before it, and fills the
// fields. All settings are read, also those that the command does not use: the
// file and the environment are shared by all commands, and what is wrong in
// them is wrong for each.
func (l *Loader) readSettings(environ []string) {
	layers := koanf.New(delimiter)
	if l.HasFile() {
		l.loadFile(layers, lastFlagText(l.flags, configFlag))
	}
	l.faults = append(l.faults, unknownVariables(environ)...)
	l.load(layers, env.Provider(delimiter, env.Opt{
		Prefix:        variablePrefix,
		EnvironFunc:   func() []string { return environ },
		TransformFunc: readVariable,
	}))
	l.load(layers, posflag.ProviderWithFlag(l.flags, delimiter, nil, l.readFlag))

	values := layers.All()
	for _, row := range l.Settings.table() {
		g, isGiven := values[row.name].(given)
		switch {
		case isGiven:
			l.origins[row.name] = g.Origin
			if err := row.value.Set(g.Text); err != nil {
				l.fault(wrong(row.name, g, err))
			}
		case row.requiredBy&l.groups != 0 && !l.isFaulty("--"+row.name):
			l.fault(Fault{Setting: row.name, Detail: fmt.Sprintf(": %s: set --%s, %s, or %s in the file",
				row.required, row.name, variableName(row.name), row.name)})
		}
	}
	l.Settings.Kafka.Properties = map[string]string{}
	for name, value := range values {
		if property, found := strings.CutPrefix(name, kafkaSetting+delimiter); found {
			g := value.(given)
			l.Settings.Kafka.Properties[property] = g.Text
			l.origins[kafkaSetting+"."+property] = g.Origin
		}
	}
	if l.groups&(Brokers|BrokersIfAny) != 0 { // others need not be allowed to read what they do not use
		l.readSecretFiles()
	}
}

// load merges one layer. Our providers read from memory and koanf is not
// strict about types, so neither can fail.
func (l *Loader) load(layers *koanf.Koanf, provider koanf.Provider) {
	if err := layers.Load(provider, nil); err != nil {
		panic("settings: merge a layer: " + err.Error())
	}
}

// rowNames are the names of all settings, kafka included.
func rowNames() []string {
	s := Defaults()
	names := []string{kafkaSetting}
	for _, row := range s.table() {
		names = append(names, row.name)
	}
	return names
}
