package main

import "testing"

// Advice is pasted into a shell, which must read the same text that the table has.
func TestShellWord(t *testing.T) {
	for text, want := range map[string]string{
		"orders.placed-2": "orders.placed-2",
		"two words":       "'two words'",
		"a'b":             `'a'\''b'`,
		"$(reboot)":       "'$(reboot)'",
		"größe":           "'größe'",
		"":                "''",
		"a\nb":            `$'a\012b'`,
		"\x1b[2J'\\":      `$'\033[2J\'\\'`,
		"\xff1":           `$'\3771'`,
	} {
		if got := shellWord(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}
