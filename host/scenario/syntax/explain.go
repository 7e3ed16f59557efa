package syntax

import (
	"regexp"
	"sort"
	"strings"
	"unicode/utf8"

	"rdmarun/host/scenario/diag"
)

// libraryMessage takes the useful part out of the library's error text.
var libraryMessage = regexp.MustCompile(`^yaml: (?:line \d+: )?(?s:(.*))$`)

// explain makes a diagnostic of the library's error: in words for people, and at the right place.
func explain(source *diag.Source, err error) *diag.Diagnostic {
	message := err.Error()
	if match := libraryMessage.FindStringSubmatch(message); match != nil {
		message = match[1]
	}
	if problem := brackets(source); problem != nil {
		return problem
	}
	line := firstBadLine(source, message)
	bad := badLine{source, line, source.Line(line), message}
	for _, known := range explanations {
		if strings.Contains(message, known.message) {
			if d := known.explain(bad); d != nil {
				return d
			}
		}
	}
	return bad.begin("not YAML: " + message)
}

// explanations are tried in order; one returns nil if it cannot add to the library's error.
var explanations = []struct {
	message string
	explain func(bad badLine) *diag.Diagnostic
}{
	{"cannot start any token", badToken},
	{"mapping values are not allowed", secondColon},
	{"unknown anchor", unknownAnchor},
	{"unknown escape character", unknownEscape},
	{"exceeded max depth", tooDeep},
	{"did not find expected key", badIndentation},
	{"did not find expected '-' indicator", badIndentation},
	{"could not find expected ':'", missingColon},
	{"expected ',' or", flowTrouble},
	{"block sequence entries are not allowed", dashInValue},
	{"expected <document start>", afterEnd},
}

// badLine is a line that the library refuses, and its error.
type badLine struct {
	source        *diag.Source
	number        int
	text, message string
}

// at is what is wrong with the bytes of the line from one to another.
func (l badLine) at(from, to int, message string) *diag.Diagnostic {
	return at(
		l.source, l.number, utf8.RuneCountInString(l.text[:from]), utf8.RuneCountInString(l.text[from:to]), diag.Syntax,
		message,
	)
}

// begin is what is wrong with the line as a whole.
func (l badLine) begin(message string) *diag.Diagnostic {
	return at(l.source, l.number, indentation(l.text), 1, diag.Syntax, message)
}

func at(source *diag.Source, line, column, width int, code diag.Code, message string) *diag.Diagnostic {
	span := source.At(diag.Position{Line: line, Column: column + 1}, width)
	return &diag.Diagnostic{Problem: diag.Problem{Code: code, Message: message}, Span: span}
}

// firstBadLine finds the line that causes the error: the last one of the shortest beginning of the
// file that fails with the same message.  A parser stops at the first error, so every longer beginning
// fails so too, and the search can halve.
func firstBadLine(source *diag.Source, message string) int {
	lines := source.Lines()
	ends := make([]int, 0, lines)
	for i, b := range source.Text {
		if b == '\n' {
			ends = append(ends, i+1)
		}
	}
	if len(ends) < lines {
		ends = append(ends, len(source.Text))
	}
	n := sort.Search(len(ends), func(i int) bool {
		_, _, err := decode(source.Text[:ends[i]])
		return err != nil && strings.HasSuffix(err.Error(), message)
	})
	return min(n+1, lines)
}

func badToken(l badLine) *diag.Diagnostic {
	if tab := strings.IndexByte(l.text, '\t'); tab >= 0 && strings.TrimLeft(l.text[:tab], " -:?") == "" {
		d := l.at(tab, tab+1, "a tab, where YAML takes only spaces").WithHint("indent with two spaces")
		d.Code = diag.Tab
		return d
	}
	for i, r := range l.text {
		if strings.ContainsRune("@`%", r) && startsToken(l.text[:i]) { // which looks back over blanks only
			return l.at(i, i+1, "a value cannot begin with "+string(r)).WithHint("put it into quotes")
		}
	}
	return nil
}

// tokenEnds are the characters behind which a value begins.
const tokenEnds = ":-[{,?"

// startsToken reports whether what follows the text is the beginning of a value.
func startsToken(before string) bool {
	before = strings.TrimRight(before, " \t")
	return before == "" || strings.ContainsAny(before[len(before)-1:], tokenEnds)
}

func secondColon(l badLine) *diag.Diagnostic {
	_, value, found := strings.Cut(l.text, ": ")
	colon := strings.Index(value, ":")
	if !found || colon < 0 { // "key: value" and then a deeper line: the colon is in the line below
		return badIndentation(l)
	}
	colon += len(l.text) - len(value)
	return l.at(colon, colon+1, "a second \": \" in one line, so this is not a single value").
		WithHint("quote the value, or begin a new line for a new key")
}

func unknownAnchor(l badLine) *diag.Diagnostic {
	alias := "*" + between(l.message, "'", "'")
	begin := strings.Index(l.text, alias)
	if begin < 0 {
		return nil
	}
	return l.at(begin, begin+len(alias), alias+" names an anchor that is nowhere").WithHint(
		"a value that begins with * needs quotes",
	)
}

func unknownEscape(l badLine) *diag.Diagnostic {
	for i := 0; i+1 < len(l.text); i++ {
		if l.text[i] != '\\' {
			continue
		}
		if !strings.ContainsRune("0abtnvfre \"/\\N_LPxuU", rune(l.text[i+1])) {
			return l.at(i, i+2, l.text[i:i+2]+" is not an escape of a double-quoted string").WithHint(
				"single quotes take backslashes as they are",
			)
		}
		i++
	}
	return nil
}

func tooDeep(l badLine) *diag.Diagnostic {
	d := l.begin("mappings and lists nest too deep here")
	d.Code = diag.TooDeep
	return d
}

func badIndentation(l badLine) *diag.Diagnostic {
	return l.begin("the indentation of this line fits no line above it").
		WithHint("the keys of one mapping, and the dashes of one list, begin in one column")
}

func missingColon(l badLine) *diag.Diagnostic {
	begin := indentation(l.text)
	return l.at(begin, begin+len(strings.TrimSpace(l.text)), "a key without \":\"").
		WithHint("or, if it goes on with the line above, it needs that line's indentation")
}

func flowTrouble(l badLine) *diag.Diagnostic {
	if i := strings.Index(l.text, "? "); i >= 0 {
		return l.at(i, i+1, "\"? \" inside {} or [] begins a key to YAML").WithHint(
			"put the expression into quotes: \"$(...)\"",
		)
	}
	if place := bareExpression.FindStringIndex(l.text); place != nil {
		return l.at(place[0], place[1], "inside {} or [] this ends at the first bracket, comma or quote").
			WithHint("put the expression into quotes: \"$(...)\"")
	}
	if place := bracketInWord.FindStringIndex(l.text); place != nil {
		return l.at(place[0], place[1], "inside {} or [] a value without quotes ends at a bracket").
			WithHint("put it into quotes: \"%s..]\"", l.text[place[0]:place[1]])
	}
	if place := colonInFlowValue.FindStringSubmatchIndex(l.text); place != nil {
		return l.at(place[2], place[3], "a second \": \" in one value").WithHint(
			"a \",\" is missing before the key, or the value needs quotes",
		)
	}
	return l.begin("a \",\" or a closing bracket is missing in this line")
}

var (
	// bareExpression is $( outside quotes up to the character that ends a plain value in flow style.
	bareExpression = regexp.MustCompile(`\$\([^"'\[\]{},]*["'\[\]{},]`)
	// bracketInWord is a name with an index, client[2], which only quotes keep together in flow style.
	bracketInWord = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*\[`)
	// colonInFlowValue is "key: some words key2:" with the last colon as its group.
	colonInFlowValue = regexp.MustCompile(`: [^,"'\[\]{}:]+(:) `)
)

func dashInValue(l badLine) *diag.Diagnostic {
	dash := strings.Index(l.text, ": - ") + len(": ")
	if dash < len(": ") {
		return badIndentation(l)
	}
	return l.at(dash, dash+1, "a list cannot begin in the line of its key").WithHint(
		"begin it in the next line, or write [a, b]",
	)
}

func afterEnd(l badLine) *diag.Diagnostic {
	return l.begin("the document has ended before this, so it belongs to nothing")
}

func indentation(text string) int { return len(text) - len(strings.TrimLeft(text, " ")) }

func between(text, open, end string) string {
	_, rest, _ := strings.Cut(text, open)
	inner, _, _ := strings.Cut(rest, end)
	return inner
}

// brackets looks for the errors that the library places worst: a bracket or a quote that is not closed, or closed by
// another bracket. It reads only the tokens that this needs, and only after the library has rejected the file. So it
// ignores what it does not understand.
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
	starts := true // startsToken of the text before
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
		case (r == '&' || r == '!') && starts: // an anchor or a tag, which its value follows
			i = endOfProperty(line, i)
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

// endOfProperty is where an anchor or a tag that begins at i ends: at the blank before its value, or at its last
// character.
func endOfProperty(line []rune, i int) int {
	for i+1 < len(line) && line[i] != ' ' && !strings.ContainsRune(",[]{}", line[i+1]) {
		i++
	}
	return i
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

// beginsBlock reports whether a line inside an open bracket looks like the next step or key of the file. Then the
// closing bracket is missing further up.
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
		return at(
			s.source, s.line, i, 1, diag.Syntax,
			"a closing "+string(r)+", where a "+string(closer(last.bracket))+" is due",
		).
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
