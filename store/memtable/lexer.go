package memtable

import (
	"fmt"
	"strings"
)

// maxExpression is the longest expression text, in bytes.
const maxExpression = 4096

type tokenKind int

const (
	endToken    tokenKind = iota
	wordToken             // an attribute name, a keyword or a function name
	nameToken             // #variable
	valueToken            // :variable
	indexToken            // digits, inside brackets
	symbolToken           // ( ) [ ] , . + - = <> < <= > >=
)

type token struct {
	kind tokenKind
	text string
	at   int // byte offset in the expression
}

// is reports whether the token is the symbol, or the keyword in any case.
func (t token) is(text string) bool {
	switch t.kind {
	case symbolToken:
		return t.text == text
	case wordToken:
		return strings.EqualFold(t.text, text)
	}
	return false
}

// syntaxError says what is wrong with an expression's text; the binding
// prefixes the name of the parameter that it came in.
type syntaxError struct{ message string }

func (e *syntaxError) Error() string { return e.message }

func unexpected(text string, t token) error {
	shown := t.text
	if t.kind == endToken {
		shown = "<EOF>"
	}
	from, to := max(0, t.at-10), min(len(text), t.at+len(t.text)+10)
	return &syntaxError{fmt.Sprintf("Syntax error; token: %q, near: %q", shown, text[from:to])}
}

// tokenize splits an expression; the last token is the end.
func tokenize(text string) ([]token, error) {
	if len(text) > maxExpression {
		return nil, &syntaxError{fmt.Sprintf("Expression size has exceeded the maximum allowed size; expression size: %d", len(text))}
	}
	var tokens []token
	for at := 0; at < len(text); {
		if strings.IndexByte(" \t\r\n", text[at]) >= 0 {
			at++
			continue
		}
		t := scan(text, at)
		if t.text == "" {
			return nil, unexpected(text, token{kind: symbolToken, text: text[at : at+1], at: at})
		}
		tokens = append(tokens, t)
		at += len(t.text)
	}
	if len(tokens) == 0 {
		return nil, &syntaxError{"The expression can not be empty;"}
	}
	return append(tokens, token{kind: endToken, at: len(text)}), nil
}

// scan reads the token that begins at the offset; its text is empty when none
// does.
func scan(text string, at int) token {
	switch c := text[at]; {
	case c == '#' || c == ':':
		end := spanWord(text, at+1)
		if end == at+1 {
			return token{}
		}
		kind := nameToken
		if c == ':' {
			kind = valueToken
		}
		return token{kind: kind, text: text[at:end], at: at}
	case isDigit(c):
		end := at
		for end < len(text) && isDigit(text[end]) {
			end++
		}
		return token{kind: indexToken, text: text[at:end], at: at}
	case isWord(c):
		return token{kind: wordToken, text: text[at:spanWord(text, at)], at: at}
	}
	for _, symbol := range []string{"<>", "<=", ">=", "<", ">", "=", "(", ")", "[", "]", ",", ".", "+", "-"} {
		if strings.HasPrefix(text[at:], symbol) {
			return token{kind: symbolToken, text: symbol, at: at}
		}
	}
	return token{}
}

func spanWord(text string, from int) int {
	for from < len(text) && isWord(text[from]) {
		from++
	}
	return from
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWord(c byte) bool {
	return isDigit(c) || c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
