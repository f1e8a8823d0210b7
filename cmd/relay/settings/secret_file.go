package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
)

// fileSuffix ends the name of a property whose value stands in a file: the property
// sasl.password.file names the file that has sasl.password. So a secret need not be in
// a command line, a variable or a file of settings, and the variable has the name that
// containers know: RELAY_KAFKA_SASL_PASSWORD_FILE.
const fileSuffix = ".file"

// largestSecret is how many bytes of such a file are taken at most: a chain of
// certificates has some thousands.
const largestSecret = 64 << 10

// librdkafkaFiles are the properties of librdkafka's own that end so. It reads these
// files itself.
func librdkafkaFiles() []string {
	return []string{
		"sasl.oauthbearer.assertion.file",
		"sasl.oauthbearer.assertion.jwt.template.file",
		"sasl.oauthbearer.assertion.private.key.file",
	}
}

// readSecretFiles puts what the files have in place of the properties that name them.
// A path is not repeated in a fault: it may be the secret itself, in the wrong place.
func (l *Loader) readSecretFiles() {
	properties := l.Settings.Kafka.Properties
	l.Settings.KafkaFiles = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property, isFile := strings.CutSuffix(name, fileSuffix)
		if !isFile || slices.Contains(librdkafkaFiles(), name) {
			continue
		}
		path, origin := properties[name], l.origins[kafkaSetting+"."+name]
		delete(properties, name)
		if _, twice := properties[property]; twice {
			l.fault(Fault{Setting: kafkaSetting, Detail: fmt.Sprintf(" %s: is set too (from %s): set one of the two", property, l.origins[kafkaSetting+"."+property]),
				Origin: origin})
			continue
		}
		value, err := ReadSecret(path)
		if err != nil {
			l.fault(Fault{Setting: kafkaSetting, Detail: " " + name + "=" + hidden + ": " + err.Error(), Origin: origin})
			continue
		}
		properties[property], l.Settings.KafkaFiles[property] = value, path
		l.origins[kafkaSetting+"."+property] = origin
	}
}

// ReadSecret is what a file has, without the line break at its end that editors and
// echo add. Blanks are kept: a secret may have them. The error does not repeat the path.
func ReadSecret(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("the file cannot be read: %w", WithoutPath(err))
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, largestSecret+1))
	content = bytes.TrimSuffix(bytes.TrimSuffix(content, []byte("\n")), []byte("\r"))
	switch {
	case err != nil:
		return "", errors.New("the file cannot be read: it is no plain file, or it broke off")
	case len(content) == 0:
		return "", errors.New("the file is empty")
	case len(content) > largestSecret:
		return "", fmt.Errorf("the file has more than %d bytes", largestSecret)
	case bytes.IndexByte(content, 0) >= 0:
		return "", errors.New("the file has a zero byte, which no secret may have")
	}
	return string(content), nil
}

// withoutSecretFiles takes what was read from files out of a text, whatever the
// property: the file may be the wrong one.
func (l *Loader) withoutSecretFiles(text string) string {
	for property := range l.Settings.KafkaFiles {
		text = strings.ReplaceAll(text, l.Settings.Kafka.Properties[property], hidden)
	}
	return text
}

// WithoutPath is why a file cannot be opened, without its name: that may be what should
// be in the file, in the wrong place.
func WithoutPath(err error) error {
	var cause *fs.PathError
	if errors.As(err, &cause) {
		return cause.Err
	}
	return err
}
