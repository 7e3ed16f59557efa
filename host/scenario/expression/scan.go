package expression

import (
	"strings"
)

// Piece is a part of a scalar: literal text, or an expression.
type Piece struct {
	// Text is the literal text with escapes resolved, or the expression without $( and ).
	Text       string
	Expression bool
	// Offset is where Text begins in the scalar's value, in bytes.
	Offset int
}

// Scan splits a value at its expressions.  "$$(" stands for a literal "$(".  When an expression does
// not end, unterminated is the offset of its "$(", else -1.
func Scan(value string) (pieces []Piece, unterminated int) {
	var literal strings.Builder
	start := 0
	flush := func() {
		if literal.Len() > 0 {
			pieces = append(pieces, Piece{Text: literal.String(), Offset: start})
			literal.Reset()
		}
	}
	for i := 0; i < len(value); {
		switch {
		case strings.HasPrefix(value[i:], "$$("):
			literal.WriteString("$(")
			i += 3
		case strings.HasPrefix(value[i:], "$("):
			length := bodyLength(value[i+2:])
			if length < 0 {
				return pieces, i
			}
			flush()
			pieces = append(pieces, Piece{Text: value[i+2 : i+2+length], Expression: true, Offset: i + 2})
			i += length + 3
			start = i
		default:
			literal.WriteByte(value[i])
			i++
		}
	}
	flush()
	return pieces, -1
}

// Contains tells whether a value has an expression, finished or not.
func Contains(value string) bool {
	rest := strings.ReplaceAll(value, "$$(", "")
	return strings.Contains(rest, "$(")
}

// bodyLength is the length of an expression up to its closing parenthesis, minding the parentheses
// and strings inside; -1 when there is none.
func bodyLength(text string) int {
	depth := 0
	var quote byte
	for i := 0; i < len(text); i++ {
		b := text[i]
		switch {
		case quote != 0:
			if b == '\\' && quote != '`' {
				i++
			} else if b == quote {
				quote = 0
			}
		case b == '"' || b == '\'' || b == '`':
			quote = b
		case b == '(':
			depth++
		case b == ')' && depth == 0:
			return i
		case b == ')':
			depth--
		}
	}
	return -1
}
