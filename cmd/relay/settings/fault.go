package settings

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/bucketbrigade/relay/kafka"
)

// Fault is one thing that is wrong with a configuration.
type Fault struct {
	Setting string // its name; for an unknown one as it was written, such as RELAY_TABEL
	Detail  string // its value, unless secret or unset, and what is wrong
	Origin  string // the flag, the variable, or file and line; empty when it is clear or unset
}

func (f Fault) Error() string {
	if f.Origin == "" {
		return f.Setting + f.Detail
	}
	return fmt.Sprintf("%s%s (from %s)", f.Setting, f.Detail, f.Origin)
}

// Faults are all faults of one configuration: nothing was started, and the
// operator can correct them in one go.
type Faults []Fault

func (f Faults) Error() string {
	var text strings.Builder
	if len(f) == 1 {
		text.WriteString("one setting is wrong:")
	} else {
		fmt.Fprintf(&text, "%d settings are wrong:", len(f))
	}
	for _, fault := range f {
		text.WriteString("\n  " + fault.Error())
	}
	return text.String()
}

// wrong is the fault of a value that was given for a known setting.
func wrong(name string, g given, problem error) Fault {
	return Fault{Setting: name, Detail: " " + quoted(name, g) + ": " + problem.Error(), Origin: g.Origin}
}

// unknown is the fault of a name that no setting has.
func unknown(name string, g given, kind, nearest string) Fault {
	return Fault{
		Setting: name,
		Detail:  fmt.Sprintf(" %s: no such %s; the nearest is %s", quoted(name, g), kind, nearest),
		Origin:  g.Origin,
	}
}

// hidden stands for the value of a secret.
const hidden = kafka.Redacted

func quoted(name string, g given) string {
	if g.Hidden || secret(name, g.Text) {
		return hidden
	}
	return strconv.Quote(g.Text)
}

var (
	// secretName matches what may hold a secret, generously: also the whole of
	// the namespaces in which most do, so that a misspelled sasl.pasword is not
	// shown in the very message that names it.
	secretName = regexp.MustCompile(`pass|pwd|secret|token|credential|jaas|\.pem$|oauthbearer|sasl\.|ssl\.key|keystore`)
	plainName  = regexp.MustCompile(`sasl\.(mechanisms?|username|kerberos\.(service\.name|principal))$|ssl\.keystore\.location$|ssl\.key\.location$|admin\.token\.file$`)
)

// secret tells whether the value of a setting, variable or Kafka property must
// not be shown. Unknown names are judged too: most are misspelled known ones.
// Addresses with credentials in them are secret whatever their name.
func secret(name, value string) bool {
	name = strings.NewReplacer("_", ".", "-", ".").Replace(strings.ToLower(name))
	return kafka.Secret(name, value) || secretName.MatchString(name) && !plainName.MatchString(name)
}
