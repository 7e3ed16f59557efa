package syntax

import (
	"strings"

	"rdmarun/host/scenario/diag"
)

// brackets looks for what the library's errors place worst: a bracket or a quote that is not closed,
// or closed by another bracket.  It reads tokens only as far as that needs, and only after the
// library has refused the file, so what it cannot judge it leaves alone.
func brackets(source *diag.Source) *diag.Diagnostic {
	s := bracketScanner{source: source}
	for s.line = 1; s.line <= source.Lines(); s.line++ {
		if d := s.scanLine([]rune(source.Line(s.line))); d != nil {
			return d
		}
	}
	return s.end()
}

type opening struct {
	bracket rune
	diag.Position
}

type bracketScanner struct {
	source *diag.Source
	line   int
	open   []opening
	// quote is the open quote's character, 0 outside; quoteAt is its place.
	quote   rune
	quoteAt diag.Position
	// block is the indentation of the line that began a "|" or ">" text, -1 outside.
	block   int
	inBlock bool
	// closed is set right after a closing bracket.
	closed bool
}

func closer(open rune) rune {
	if open == '[' {
		return ']'
	}
	return '}'
}

func (s *bracketScanner) scanLine(line []rune) *diag.Diagnostic {
	indent := 0
	for indent < len(line) && line[indent] == ' ' {
		indent++
	}
	if s.inBlock {
		if indent == len(line) || indent > s.block {
			return nil
		}
		s.inBlock = false
	}
	if s.quote == 0 && len(s.open) > 0 && s.beginsBlock(line[indent:], indent) {
		return s.unclosed()
	}
	starts := true // startsToken of what stands before
	for i := indent; i < len(line); i++ {
		r := line[i]
		if i > indent && line[i-1] != ' ' && line[i-1] != '\t' {
			starts = strings.ContainsRune(tokenEnds, line[i-1])
		}
		if s.quote != 0 {
			i += s.inQuote(line, i)
			continue
		}
		switch {
		case r == '#' && (i == 0 || line[i-1] == ' '):
			return nil
		case (r == '"' || r == '\'') && starts:
			s.quote, s.quoteAt = r, diag.Position{Line: s.line, Column: i + 1}
		case (r == '[' || r == '{') && (len(s.open) > 0 || starts):
			s.open = append(s.open, opening{r, diag.Position{Line: s.line, Column: i + 1}})
		case (r == ']' || r == '}') && len(s.open) > 0:
			if d := s.close(r, i); d != nil {
				return d
			}
			s.closed = true
			continue
		case (r == ']' || r == '}') && (s.closed || starts):
			return at(s.source, s.line, i, 1, diag.Syntax, "a closing "+string(r)+" that nothing opened")
		}
		s.closed = s.closed && r == ' '
	}
	s.closed = false
	s.enterBlock(line, indent)
	return nil
}

// inQuote handles one character of a quoted string and returns how many more to pass over.
func (s *bracketScanner) inQuote(line []rune, i int) (skip int) {
	switch {
	case s.quote == '"' && line[i] == '\\':
		return 1
	case s.quote == '\'' && line[i] == '\'' && i+1 < len(line) && line[i+1] == '\'':
		return 1
	case line[i] == s.quote:
		s.quote = 0
	}
	return 0
}

// beginsBlock tells whether a line inside an open bracket looks like the next step or key of the
// file: then the bracket was forgotten further up.
func (s *bracketScanner) beginsBlock(text []rune, indent int) bool {
	line := string(text)
	opened := s.source.Line(s.open[0].Line)
	if indent > indentation(opened) {
		return false
	}
	return strings.HasPrefix(line, "- ") || strings.HasSuffix(line, ":") || strings.Contains(line, ": ")
}

func (s *bracketScanner) close(r rune, i int) *diag.Diagnostic {
	last := s.open[len(s.open)-1]
	if closer(last.bracket) != r {
		return at(s.source, s.line, i, 1, diag.Syntax, "a closing "+string(r)+", where a "+string(closer(last.bracket))+" is due").
			WithHint("the %c in line %d, column %d is still open", last.bracket, last.Line, last.Column)
	}
	s.open = s.open[:len(s.open)-1]
	return nil
}

// enterBlock notes that the lines below are text when this one ends with "|" or ">".
func (s *bracketScanner) enterBlock(line []rune, indent int) {
	if s.quote != 0 || len(s.open) > 0 {
		return
	}
	text := strings.TrimRight(strings.TrimRight(string(line), " "), "+-123456789")
	if text == "" || !strings.ContainsAny(text[len(text)-1:], "|>") || !startsToken(text[:len(text)-1]) {
		return
	}
	s.inBlock, s.block = true, indent
}

func (s *bracketScanner) unclosed() *diag.Diagnostic {
	last := s.open[len(s.open)-1]
	return at(s.source, last.Line, last.Column-1, 1, diag.Syntax, "this "+string(last.bracket)+" is never closed").
		WithHint("a %c is missing", closer(last.bracket))
}

func (s *bracketScanner) end() *diag.Diagnostic {
	if s.quote != 0 {
		return at(s.source, s.quoteAt.Line, s.quoteAt.Column-1, 1, diag.Syntax, "this quote is never closed").
			WithHint("a %c is missing", s.quote)
	}
	if len(s.open) > 0 {
		return s.unclosed()
	}
	return nil
}
