package tags

import (
	"fmt"
	"strings"
)

// parser holds the token it is at; "" is the end.
type parser struct {
	text  string
	token string
	at    int // where the token begins
	next  int // where the next one is looked for
}

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
}

func (p *parser) fail(format string, args ...any) error {
	return &Error{p.text, p.at, fmt.Sprintf(format, args...)}
}
