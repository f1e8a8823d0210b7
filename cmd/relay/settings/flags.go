package settings

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

const configFlag = "config"

// flagValue records what was written for a flag; Load judges it, together with
// all the rest. Its Set never fails, since pflag stops at the first failure.
type flagValue struct {
	texts   []string
	kind    string
	preset  string   // the default, for --help
	choices []string // for completion; nil: it is no choice among a few
}

func (f *flagValue) Set(text string) error { f.texts = append(f.texts, text); return nil }
func (f *flagValue) Type() string          { return f.kind }
func (f *flagValue) String() string {
	if len(f.texts) > 0 {
		return strings.Join(f.texts, ",")
	}
	return f.preset
}

func (l *Loader) addFlags() {
	for _, a := range l.arguments {
		l.addFlag(a.Name, a.Value, a.Doc)
	}
	if l.groups == 0 {
		return
	}
	l.markSetting(l.flags.VarPF(&flagValue{kind: fileType}, configFlag, "", "YAML file with settings"))
	for _, row := range l.Settings.table() {
		if row.group&l.groups != 0 {
			l.markSetting(l.addFlag(row.name, row.value, row.doc))
		}
	}
	if l.groups&(Brokers|BrokersIfAny) != 0 {
		l.markSetting(l.flags.VarPF(&flagValue{kind: "property=value"}, kafkaSetting, "", kafkaDoc))
	}
}

func (l *Loader) markSetting(flag *pflag.Flag) {
	flag.Annotations = map[string][]string{settingAnnotation: {}}
}

func (l *Loader) addFlag(name string, value Value, doc string) *pflag.Flag {
	v := &flagValue{kind: value.Type(), preset: value.String()}
	if c, isChoice := value.(chosen); isChoice {
		v.choices = c.choices
	}
	flag := l.flags.VarPF(v, name, "", doc)
	if value.Type() == switchType {
		flag.NoOptDefVal = "on"
	}
	return flag
}

func flagTexts(flags *pflag.FlagSet, name string) []string {
	if flag := flags.Lookup(name); flag != nil {
		if v, isOurs := flag.Value.(*flagValue); isOurs {
			return v.texts
		}
	}
	return nil
}

// lastFlagText is what was written last for a flag, as usual the one that
// counts; empty when it was not given.
func lastFlagText(flags *pflag.FlagSet, name string) string {
	texts := flagTexts(flags, name)
	if len(texts) == 0 {
		return ""
	}
	return texts[len(texts)-1]
}

// readFlag is the layer of flags: the name and value of a flag that was given
// and is a setting, "" for any other.
func (l *Loader) readFlag(flag *pflag.Flag) (string, any) {
	isSetting := flag.Changed && slices.Contains(rowNames(), flag.Name) &&
		!slices.ContainsFunc(l.arguments, func(a Argument) bool { return a.Name == flag.Name })
	switch {
	case !isSetting:
		return "", nil
	case flag.Name == kafkaSetting:
		return kafkaSetting, l.kafkaFlags(flagTexts(l.flags, kafkaSetting))
	default:
		return flag.Name, given{Text: lastFlagText(l.flags, flag.Name), Origin: "--" + flag.Name}
	}
}

// kafkaFlags reads property=value texts. What has no "=" is not repeated in its
// fault: it may be a secret written in another way.
func (l *Loader) kafkaFlags(texts []string) map[string]any {
	properties := map[string]any{}
	for _, text := range texts {
		property, value, found := strings.Cut(text, "=")
		if property = strings.TrimSpace(property); !found || property == "" {
			l.fault(Fault{Setting: "--" + kafkaSetting, Detail: " " + hidden + ": must be written as property=value"})
			continue
		}
		properties[property] = given{Text: value, Origin: "--" + kafkaSetting + " " + property}
	}
	return properties
}

// unknownFlags finds the flags among args that the command does not have. The parser
// passes over them (AllowUnknown), since by itself it reports only the first.
func (l *Loader) unknownFlags(args []string) []Fault {
	flags, hides := l.flags, slices.ContainsFunc(l.arguments, func(a Argument) bool { return a.Content })
	var names []string
	flags.VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	var faults []Fault
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		name, text, hasText := strings.Cut(args[i], "=")
		switch {
		case !strings.HasPrefix(name, "-") || name == "-" || name == "-h":
		case strings.HasPrefix(name, "--") && flags.Lookup(name[2:]) != nil:
			if !hasText && flags.Lookup(name[2:]).NoOptDefVal == "" {
				i++ // its value
			}
		case hasText:
			faults = append(faults, unknown(name, given{Text: text, Hidden: hides}, "flag", nearest(name, names)))
		default:
			faults = append(faults, Fault{Setting: name, Detail: ": no such flag; the nearest is " + nearest(name, names)})
		}
	}
	return faults
}

// AllowUnknown is how a flag set must be parsed for Load to report unknown
// flags together with all other faults.
var AllowUnknown = pflag.ParseErrorsAllowlist{UnknownFlags: true}

// ParseFault is the fault that an error of pflag stands for. With AllowUnknown
// and values that are judged later, what remains is a flag at the very end of
// the command line that lacks its value, and broken syntax such as "--=".
func ParseFault(err error) Fault {
	var missing *pflag.ValueRequiredError
	if errors.As(err, &missing) {
		return Fault{Setting: "--" + missing.GetSpecifiedName(), Detail: ": needs a value"}
	}
	return Fault{Setting: "flags", Detail: ": " + err.Error()}
}
