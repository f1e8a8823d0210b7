package settings

import "github.com/spf13/pflag"

// Description is one setting as documentation has it.
type Description struct {
	Name, Variable string
	Kind           string // what its value is: "duration"
	Default        string
	Doc            string
	Group          Group // the first of its groups
}

// Describe lists all settings in the order in which people read them.
func Describe() []Description {
	s := Defaults()
	var all []Description
	for _, row := range s.table() {
		all = append(all, Description{Name: row.name, Variable: variableName(row.name), Kind: row.value.Type(),
			Default: row.value.String(), Doc: row.doc, Group: row.group & -row.group})
		if row.name == "brokers" {
			all = append(all, Description{Name: kafkaSetting, Variable: kafkaVariablePrefix + "…", Kind: "property=value", Doc: kafkaDoc, Group: Brokers})
		}
	}
	return all
}

// IsSetting tells whether a flag is a setting, or names the file with them, and not an
// argument of one command.
func IsSetting(flag *pflag.Flag) bool { return flag.Annotations[settingAnnotation] != nil }

const settingAnnotation = "relay_setting"

// Completions are what may be written for a flag, as far as that is a choice among a few;
// files tells that it is a file.
func Completions(flag *pflag.Flag) (choices []string, files bool) {
	v, isOurs := flag.Value.(*flagValue)
	if !isOurs {
		return nil, false
	}
	return v.choices, v.kind == fileType
}
