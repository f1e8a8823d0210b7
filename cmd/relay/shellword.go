package main

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// shellWord is a text of the table as one word of a shell, so that advice can be pasted:
// as it is where a shell takes it for itself, else quoted. What a terminal would not show,
// or would obey, stands in $'…' by its bytes, as bash, zsh and ksh read it.
func shellWord(text string) string {
	plainly := func(r rune) bool {
		return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-/:@%+=,", r))
	}
	switch {
	case text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !plainly(r) }):
		return text
	case legible(text) == text && utf8.ValidString(text):
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	var word strings.Builder
	for rest := text; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case r == '\'' || r == '\\':
			word.WriteString(`\` + rest[:size])
		case unicode.IsPrint(r) && (r != utf8.RuneError || size > 1):
			word.WriteString(rest[:size])
		default:
			for _, octet := range []byte(rest[:size]) {
				fmt.Fprintf(&word, `\%03o`, octet)
			}
		}
		rest = rest[size:]
	}
	return "$'" + word.String() + "'"
}
