package settings

import "testing"

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"table", "table", 0}, {"", "abc", 3}, {"tabel", "table", 1}, {"tble", "table", 1},
		{"tabble", "table", 1}, {"fable", "table", 1}, {"bacth-sise", "batch-size", 2}, {"abc", "xyz", 3},
	} {
		if got := edits(c.a, c.b); got != c.want {
			t.Errorf("edits(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
		if got := edits(c.b, c.a); got != c.want {
			t.Errorf("edits(%q, %q) = %d, want %d", c.b, c.a, got, c.want)
		}
	}
}

func TestSizesAndDurationsAreWrittenAsTheyAreRead(t *testing.T) {
	for _, text := range []string{"1B", "1KiB", "1KB", "8MiB", "500KB", "1GiB", "1025B"} {
		n, err := parseSize(text)
		if err != nil || formatSize(n) != text {
			t.Errorf("%s is read as %d (%v) and written as %s", text, n, err, formatSize(n))
		}
	}
	for _, text := range []string{"", "0", "-1", "1.5MiB", "2GiB", "MiB", "9999999999999999999"} {
		if n, err := parseSize(text); err == nil {
			t.Errorf("%q is read as %d", text, n)
		}
	}
}

// A setting whose variable looked like one of Kubernetes' would be ignored.
func TestNoSettingHasTheNameOfAKubernetesVariable(t *testing.T) {
	for _, name := range rowNames() {
		if variable := variableName(name); kubernetesVariable.MatchString(variable) {
			t.Errorf("%s is taken for a variable of Kubernetes", variable)
		}
	}
}

// The names of settings and the fields of relay.Config are one vocabulary, so
// that faults of fields can be told as faults of settings.
func TestFieldsHaveTheNamesOfSettings(t *testing.T) {
	for field, setting := range map[string]string{
		"LeaseDuration": "lease-duration", "RelayID": "relay-id", "MessageIDHeader": "message-id-header", "Table": "table",
	} {
		if got := settingName(field); got != setting {
			t.Errorf("field %s is %s, want %s", field, got, setting)
		}
	}
}
