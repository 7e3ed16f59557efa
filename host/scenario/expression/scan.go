package expression

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/quantity"
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

// Contains reports whether a value has an expression, finished or not.
func Contains(value string) bool {
	rest := strings.ReplaceAll(value, "$$(", "")
	return strings.Contains(rest, "$(")
}

// bodyLength is the length of an expression up to its closing parenthesis, minding the parentheses
// and strings inside; -1 when there is none.
func bodyLength(text string) int {
	depth := 0
	for i := 0; i < len(text); {
		if length := quotedLength(text[i:]); length > 0 {
			i += length
			continue
		}
		switch text[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth < 0 {
				return i
			}
		}
		i++
	}
	return -1
}

// The library has no units, and no integers of more than 63 bits. Such literals become names of the same length, so
// that the places in its errors stay right. Then they become constants in the tree that it makes of the expression.

// letters replace the characters of a number that a name cannot have at its beginning, or at all.  They belong to the
// Vai script, which scenarios do not use.
const letters = "ꔀꔁꔂꔃꔄꔅꔆꔇꔈꔉꔊ"

// numberCharacters are those characters, in the same order.
const numberCharacters = "0123456789."

// text is an expression as it is written, and as the library reads it.
type text struct {
	source, masked string
	literals       map[string]any
	hex            bool // a number in it is written in hex
}

var (
	plainNumber = regexp.MustCompile(
		`^(0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|[0-9][0-9_]*(\.[0-9_]+)?([eE][+-]?[0-9]+)?)$`,
	)
	// beyondTimes are the units that only sizes have, by their last letter.
	beyondTimes = regexp.MustCompile(`[Bb]$|[kKMGT]i?$`)
)

// read finds the literals in an expression.
func read(source string) (text, *Error) {
	t := text{source: source, literals: make(map[string]any)}
	var masked strings.Builder
	for i := 0; i < len(source); {
		switch length := max(quotedLength(source[i:]), commentLength(source[i:])); {
		case length > 0:
			masked.WriteString(source[i : i+length])
			i += length
			continue
		case !begins(source, i):
			masked.WriteByte(source[i])
			i++
			continue
		}
		word := numberAt(source[i:])
		value, bad := literalValue(word)
		if bad != nil {
			return t, &Error{*bad, i, i + len(word)}
		}
		t.hex = t.hex || strings.HasPrefix(strings.ToLower(word), "0x")
		if value != nil {
			name := mask(word)
			t.literals[name] = value
			masked.WriteString(name)
		} else {
			masked.WriteString(word)
		}
		i += len(word)
	}
	t.masked = masked.String()
	return t, nil
}

// commentLength is the length of a comment at the beginning; 0 for anything else.
func commentLength(source string) int {
	for _, comment := range []struct{ begin, end string }{{"//", "\n"}, {"/*", "*/"}} {
		if strings.HasPrefix(source, comment.begin) {
			if end := strings.Index(source[2:], comment.end); end >= 0 {
				return 2 + end + len(comment.end)
			}
			return len(source)
		}
	}
	return 0
}

// quotedLength is the length of a text in quotes at the beginning; 0 for anything else.  A text without an end goes to
// the end of the source: the library reports it.
func quotedLength(source string) int {
	quote := source[0]
	if quote != '"' && quote != '\'' && quote != '`' {
		return 0
	}
	for i := 1; i < len(source); i++ {
		switch {
		case source[i] == '\\' && quote != '`':
			i++
		case source[i] == quote:
			return i + 1
		}
	}
	return len(source)
}

// begins reports whether a number begins at a place, and not the middle of a name.
func begins(source string, at int) bool {
	if source[at] < '0' || source[at] > '9' {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(source[:at])
	return at == 0 || !isWord(before)
}

func isWord(r rune) bool { return r == '_' || r == '$' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// numberAt is the number at the beginning of a text with all that clings to it.
func numberAt(source string) string {
	for end, r := range source {
		switch {
		case isWord(r):
		case r == '.' && end+1 < len(source) && source[end+1] >= '0' && source[end+1] <= '9': // and not the range 1..4
		case (r == '+' || r == '-') && (source[end-1] == 'e' || source[end-1] == 'E') &&
			plainNumber.MatchString(source[:end]+"1"):
			// 1e+3
		default:
			return source[:end]
		}
	}
	return source
}

// literalValue is the value of a number that the library cannot read; nil for one that it can.
func literalValue(word string) (any, *diag.Problem) {
	if plainNumber.MatchString(word) {
		clean := strings.ReplaceAll(word, "_", "")
		if _, err := strconv.ParseInt(clean, 0, 64); err != nil {
			if n, err := strconv.ParseUint(clean, 0, 64); err == nil {
				return n, nil
			}
		}
		return nil, nil
	}
	d, noTime := quantity.ParseTime(word)
	if noTime == nil {
		return d, nil
	}
	n, noSize := quantity.ParseSize(word)
	switch {
	case noSize == nil:
		return n, nil
	case !quantity.HasUnit(word):
		return nil, diag.Wrong(
			diag.ExpressionSyntax, diag.Quoted(word)+" is neither a number nor a name",
			"a unit follows its number: 4KiB, 250ms",
		)
	case noSize.Code != diag.WrongUnit || beyondTimes.MatchString(word):
		return nil, noSize
	}
	unit := strings.TrimLeft(word, numberCharacters)
	hint := cmp.Or(diag.DidYouMean(unit, quantity.Names(quantity.Units())), noTime.Hint)
	return nil, diag.Wrong(diag.WrongUnit, "no unit is called "+diag.Quoted(unit), hint)
}

// mask makes a name of a literal.
func mask(word string) string {
	return strings.Map(func(r rune) rune {
		if at := strings.IndexRune(numberCharacters, r); at >= 0 {
			return []rune(letters)[at]
		}
		return r
	}, word)
}

// written is a text of the library's with the literals as they were.
func written(masked string) string {
	return strings.Map(func(r rune) rune {
		for i, letter := range []rune(letters) {
			if letter == r {
				return rune(numberCharacters[i])
			}
		}
		return r
	}, masked)
}

// Visit puts the literals' values into the tree.
func (t text) Visit(node *ast.Node) {
	name, isName := (*node).(*ast.IdentifierNode)
	if !isName {
		return
	}
	switch value := t.literals[name.Value].(type) {
	case nil:
	case int:
		ast.Patch(node, &ast.IntegerNode{Value: value})
	default:
		ast.Patch(node, &ast.ConstantNode{Value: value})
	}
}
