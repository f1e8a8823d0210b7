package settings

import (
	"regexp"
	"slices"
	"strings"

	"github.com/bucketbrigade/relay/outbox"
)

// validate asks the structs that were filled, so that each rule stands in one
// place, and gives their faults the names of settings. Faults that mention a
// setting which is wrong already are left out: they would judge its default.
func (l *Loader) validate() {
	already := map[string]bool{}
	for _, f := range l.faults {
		already[strings.TrimPrefix(f.Setting, "--")] = true
	}
	var faults []error
	switch {
	case l.groups&Relay != 0:
		faults = leaves(l.Settings.Relay.Validate())
	case l.groups&Simulated != 0:
		faults = l.triedFaults(Simulated, func(name string) bool { return l.origins[name] == "" && !l.HasFile() })
	case l.groups&Costs != 0:
		faults = l.triedFaults(Costs, func(string) bool { return false })
	default:
		faults = leaves(l.Settings.Schema().Validate())
	}
	known := rowNames()
	for _, err := range faults {
		name, detail, mentioned := renamed(err.Error(), known)
		if name == "" || slices.ContainsFunc(mentioned, func(m string) bool { return already[m] }) {
			continue
		}
		l.fault(Fault{Setting: name, Detail: detail, Origin: l.origins[name]})
	}
	if l.groups&(Brokers|BrokersIfAny) != 0 {
		// Without brokers there is nothing to reach: that is told already where they
		// are required, and no fault where they are not.
		already["brokers"] = already["brokers"] || len(l.Settings.Kafka.Brokers) == 0
		l.validateKafka(already)
	}
}

// triedFaults are those of the settings of a group that stands for a relay's, and of
// bucket-count. A simulation without a file draws what was not given to fit, so that
// only what was given can be wrong: isDrawn.
func (l *Loader) triedFaults(group Group, isDrawn func(name string) bool) []error {
	tried := []string{"bucket-count"}
	for _, row := range l.Settings.table() {
		if row.group&group != 0 {
			tried = append(tried, row.name)
		}
	}
	return slices.DeleteFunc(leaves(l.Settings.Relay.Validate()), func(err error) bool {
		name, _, mentioned := renamed(err.Error(), rowNames())
		return !slices.Contains(tried, name) || slices.ContainsFunc(mentioned, isDrawn)
	})
}

// kafkaProperty begins a fault of a Kafka property, and names it.
var kafkaProperty = regexp.MustCompile(`^kafka property "?([^="]+)`)

// validateKafka asks package kafka, whose faults begin with the setting's name.
func (l *Loader) validateKafka(already map[string]bool) {
	for _, err := range leaves(l.Settings.Kafka.Validate()) {
		text := err.Error()
		name, detail, _ := strings.Cut(text, ":")
		switch property := kafkaProperty.FindStringSubmatch(text); {
		case property != nil:
			name = kafkaSetting + "." + property[1]
			detail = strings.TrimPrefix(text, "kafka property")
			if value := l.Settings.Kafka.Properties[property[1]]; value != "" && secret(property[1], value) {
				detail = strings.ReplaceAll(detail, value, hidden)
			}
			l.fault(Fault{Setting: kafkaSetting, Detail: l.withoutSecretFiles(detail), Origin: l.origins[name]})
		case !already[name]:
			l.fault(Fault{Setting: name, Detail: ":" + l.withoutSecretFiles(detail), Origin: l.origins[name]})
		}
	}
}

// Schema is where the outbox is.
func (s *Settings) Schema() outbox.Schema {
	c := s.Relay
	return outbox.Schema{Table: c.Table, PartitionKey: c.PartitionKey, SortKey: c.SortKey,
		KeyPrefix: c.KeyPrefix, BucketCount: c.BucketCount}
}

// leaves are the errors that were joined, however deep.
func leaves(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, leaves(e)...)
	}
	return all
}

var fieldName = regexp.MustCompile(`\b[A-Z][a-z]+[A-Za-z]*\b`)

// renamed puts the names of settings in place of the fields' in a fault that
// begins with a field's name: "LeaseDuration 1s: ..." is about lease-duration.
// Name is empty when the field is none that can be set, such as a client, which
// is filled later. Mentioned are all settings in the text.
func renamed(fault string, known []string) (name, detail string, mentioned []string) {
	text := fieldName.ReplaceAllStringFunc(fault, func(field string) string {
		setting := settingName(field)
		if !slices.Contains(known, setting) {
			return field
		}
		mentioned = append(mentioned, setting)
		return setting
	})
	if len(mentioned) > 0 && strings.HasPrefix(text, mentioned[0]) {
		return mentioned[0], strings.TrimPrefix(text, mentioned[0]), mentioned
	}
	return "", "", mentioned
}

// settingName is the name of the setting that fills a field: LeaseDuration is
// lease-duration, RelayID is relay-id.
func settingName(field string) string {
	field = strings.ReplaceAll(field, "ID", "Id")
	var name strings.Builder
	for i, r := range field {
		if i > 0 && r >= 'A' && r <= 'Z' {
			name.WriteByte('-')
		}
		name.WriteRune(r)
	}
	return strings.ToLower(name.String())
}
