// Package tags reads expressions that select cases by their tags, or by words of their names: "smoke && !slow".
package tags

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// form is what thresholds can choose by.
var form = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:-]*$`)

// IsTag reports whether a text can be a tag: letters, digits, and any of _.:-, of which the last three do not begin it.
func IsTag(text string) bool { return form.MatchString(text) }

// Expression is a condition on the tags of a case, or on the words of its name.  The nil Expression holds for all.
type Expression struct {
	holds condition
	words []string
}

// Words are the words of the expression, in order.
func (e *Expression) Words() []string {
	if e == nil {
		return nil
	}
	return e.words
}

// Matches reports whether the condition holds for those tags.
func (e *Expression) Matches(tags []string) bool {
	return e.holdsFor(func(tag string) bool { return slices.Contains(tags, tag) })
}

// Within reports whether the condition holds for the words that are somewhere in a text, in upper or lower case.
func (e *Expression) Within(text string) bool {
	text = strings.ToLower(text)
	return e.holdsFor(func(word string) bool { return strings.Contains(text, strings.ToLower(word)) })
}

// holdsFor reports whether the condition holds, where has reports whether each of its words holds.
func (e *Expression) holdsFor(has func(word string) bool) bool { return e == nil || e.holds(has) }

// syntaxError is what is wrong with an expression, and where.
type syntaxError struct {
	Text    string
	Offset  int // in bytes
	Message string
}

func (e *syntaxError) Error() string {
	return fmt.Sprintf("%q, at character %d: %s", e.Text, e.Offset+1, e.Message)
}

// deepest bounds the nesting of parentheses and negations.
const deepest = 100

// Parse reads an expression: tags joined by && and ||, negated by !, and grouped by parentheses. The order of
// precedence is that of C and Go. The words and, or and not mean the same, as in Python. A tag is any other word
// without those characters and spaces.
func Parse(text string) (*Expression, error) {
	p := &parser{text: text}
	p.advance()
	holds, err := p.or(0)
	if err != nil {
		return nil, err
	}
	if p.token != "" {
		return nil, p.fail("%q is not expected here; join words by && or ||", p.written())
	}
	return &Expression{holds, p.words}, nil
}

type condition = func(has func(word string) bool) bool

func (p *parser) or(depth int) (condition, error) {
	return p.joined(depth, "||", (*parser).and, func(left, right condition) condition {
		return func(has func(string) bool) bool { return left(has) || right(has) }
	})
}

func (p *parser) and(depth int) (condition, error) {
	return p.joined(depth, "&&", (*parser).not, func(left, right condition) condition {
		return func(has func(string) bool) bool { return left(has) && right(has) }
	})
}

// joined reads operands with an operator between them.
func (p *parser) joined(
	depth int, operator string, operand func(*parser, int) (condition, error),
	join func(left, right condition) condition,
) (condition, error) {
	left, err := operand(p, depth)
	for err == nil && p.token == operator {
		p.advance()
		var right condition
		if right, err = operand(p, depth); err == nil {
			left = join(left, right)
		}
	}
	return left, err
}

func (p *parser) not(depth int) (condition, error) {
	switch {
	case depth > deepest:
		return nil, p.fail("nested too deep")
	case p.token == "":
		return nil, p.fail("a word is missing")
	case p.token == "!":
		p.advance()
		inner, err := p.not(depth + 1)
		return func(has func(string) bool) bool { return !inner(has) }, err
	case p.token == "(":
		return p.group(depth)
	case isOperator(p.token[0]):
		return nil, p.fail("a word is missing before %q", p.written())
	}
	tag := p.token
	p.words = append(p.words, tag)
	p.advance()
	return func(has func(string) bool) bool { return has(tag) }, nil
}

func (p *parser) group(depth int) (condition, error) {
	open := p.at
	p.advance()
	inner, err := p.or(depth + 1)
	if err != nil {
		return nil, err
	}
	if p.token != ")" {
		p.at = open
		return nil, p.fail("this ( is never closed")
	}
	p.advance()
	return inner, nil
}

// parser holds the token it is at; "" is the end.
type parser struct {
	text  string
	token string
	at    int // where the token begins
	next  int // where the next one is looked for
	words []string
}

// written is the token as the text has it.
func (p *parser) written() string { return p.text[p.at:p.next] }

func isOperator(c byte) bool { return strings.IndexByte("!&|()", c) >= 0 }

// advance goes to the next token: an operator or a tag.
func (p *parser) advance() {
	for p.next < len(p.text) && strings.IndexByte(" \t\n", p.text[p.next]) >= 0 {
		p.next++
	}
	p.at = p.next
	if p.at == len(p.text) {
		p.token = ""
		return
	}
	rest := p.text[p.at:]
	switch {
	case strings.HasPrefix(rest, "&&") || strings.HasPrefix(rest, "||"):
		p.token = rest[:2]
	case isOperator(rest[0]):
		p.token = rest[:1]
	default:
		end := strings.IndexAny(rest, "!&|() \t\n")
		if end < 0 {
			end = len(rest)
		}
		p.token = rest[:end]
	}
	p.next = p.at + len(p.token)
	switch p.token {
	case "and":
		p.token = "&&"
	case "or":
		p.token = "||"
	case "not":
		p.token = "!"
	}
}

func (p *parser) fail(format string, args ...any) error {
	return &syntaxError{p.text, p.at, fmt.Sprintf(format, args...)}
}
