package settings

import (
	"regexp"
	"slices"
	"strings"
)

const (
	variablePrefix      = "RELAY_"
	kafkaVariablePrefix = variablePrefix + "KAFKA_"
)

// kubernetesVariable matches what Kubernetes adds to each container for a
// service whose name begins with "relay": RELAY_SERVICE_HOST,
// RELAY_SERVICE_PORT_ADMIN, RELAY_PORT, RELAY_PORT_9464_TCP_ADDR and the like.
// No setting may ever have a name that this matches.
var kubernetesVariable = regexp.MustCompile(
	`^RELAY_(?:[A-Z0-9_]+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$`)

func variableName(setting string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(setting, "-", "_"))
}

// readVariable is the layer of the environment: the name and value of the
// setting that a variable is for, "" for none. An empty variable counts as not
// set, as compose files and unit files leave them.
func readVariable(variable, text string) (string, any) {
	setting, found := settingOf(variable)
	if !found || text == "" {
		return "", nil
	}
	return setting, given{Text: text, Origin: variable}
}

// settingOf is the koanf name of the setting of a variable.
// RELAY_KAFKA_SASL_USERNAME is kafka/sasl.username: the names of librdkafka's
// properties have dots and no underscores.
func settingOf(variable string) (string, bool) {
	if kubernetesVariable.MatchString(variable) {
		return "", false
	}
	if property, found := strings.CutPrefix(variable, kafkaVariablePrefix); found && property != "" {
		return kafkaSetting + delimiter + strings.ToLower(strings.ReplaceAll(property, "_", ".")), true
	}
	for _, name := range rowNames() {
		if variableName(name) == variable && name != kafkaSetting {
			return name, true
		}
	}
	return "", false
}

// unknownVariables finds the variables RELAY_* that are for no setting, in
// alphabetical order.
func unknownVariables(environ []string) []Fault {
	var faults []Fault
	for _, entry := range slices.Sorted(slices.Values(environ)) {
		variable, text, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(variable, variablePrefix) || kubernetesVariable.MatchString(variable) {
			continue
		}
		if _, known := settingOf(variable); known {
			continue
		}
		if variable+"_" == kafkaVariablePrefix {
			faults = append(faults, Fault{Setting: variable,
				Detail: " " + hidden + ": is set one property at a time, such as RELAY_KAFKA_SECURITY_PROTOCOL"})
			continue
		}
		faults = append(faults, unknown(variable, given{Text: text}, "variable", nearestVariable(variable)))
	}
	return faults
}

// nearestVariable also considers that only KAFKA was misspelled, in front of
// whatever property.
func nearestVariable(variable string) string {
	var candidates []string
	for _, name := range rowNames() {
		if name != kafkaSetting {
			candidates = append(candidates, variableName(name))
		}
	}
	if _, property, found := strings.Cut(strings.TrimPrefix(variable, variablePrefix), "_"); found && property != "" {
		candidates = append(candidates, kafkaVariablePrefix+property)
	}
	return nearest(variable, candidates)
}
