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
	text := source.Line(line)
	for _, known := range explanations {
		if strings.Contains(message, known.message) {
			if d := known.explain(source, line, text, message); d != nil {
				return d
			}
		}
	}
	return at(source, line, indentation(text), 1, diag.Syntax, "not YAML: "+message)
}

// explanations are tried in order; one that cannot say more than the library returns nil.
var explanations = []struct {
	message string
	explain func(source *diag.Source, line int, text, message string) *diag.Diagnostic
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

func at(source *diag.Source, line, column, width int, code diag.Code, message string) *diag.Diagnostic {
	span := source.At(diag.Position{Line: line, Column: column + 1}, width)
	return &diag.Diagnostic{Code: code, Span: span, Message: message}
}

// firstBadLine finds the line whose reading brings the error about: the shortest beginning of the
// file that fails in the same words.  A parser stops at the first error, so every longer beginning
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

func badToken(source *diag.Source, line int, text, _ string) *diag.Diagnostic {
	if tab := strings.IndexByte(text, '\t'); tab >= 0 && strings.TrimLeft(text[:tab], " -:?") == "" {
		return at(source, line, utf8.RuneCountInString(text[:tab]), 1, diag.Tab, "a tab, where YAML takes only spaces").
			WithHint("indent with two spaces")
	}
	for i, r := range text {
		if !strings.ContainsRune("@`%", r) || !startsToken(text[:i]) { // which looks back over blanks only
			continue
		}
		return at(source, line, utf8.RuneCountInString(text[:i]), 1, diag.Syntax,
			"a value cannot begin with "+string(r)).WithHint("put it into quotes")
	}
	return nil
}

// tokenEnds are the characters behind which a value begins.
const tokenEnds = ":-[{,?"

// startsToken tells whether what follows the text is the beginning of a value.
func startsToken(before string) bool {
	before = strings.TrimRight(before, " \t")
	return before == "" || strings.ContainsAny(before[len(before)-1:], tokenEnds)
}

func secondColon(source *diag.Source, line int, text, _ string) *diag.Diagnostic {
	first := strings.Index(text, ": ")
	if first < 0 {
		// "key: value" and then a deeper line: the colon is in the line below.
		return badIndentation(source, line, text, "")
	}
	second := strings.Index(text[first+2:], ":")
	if second < 0 {
		return badIndentation(source, line, text, "")
	}
	column := utf8.RuneCountInString(text[:first+2+second])
	return at(source, line, column, 1, diag.Syntax, "a second \": \" in one line, so this is no single value").
		WithHint("quote the value, or begin a new line for a new key")
}

func unknownAnchor(source *diag.Source, line int, text, message string) *diag.Diagnostic {
	name := between(message, "'", "'")
	column := strings.Index(text, "*"+name)
	if column < 0 {
		return nil
	}
	return at(source, line, utf8.RuneCountInString(text[:column]), len(name)+1, diag.Syntax,
		"*"+name+" names an anchor that is nowhere").WithHint("a value that begins with * needs quotes")
}

func unknownEscape(source *diag.Source, line int, text, _ string) *diag.Diagnostic {
	for i := 0; i+1 < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		if !strings.ContainsRune("0abtnvfre \"/\\N_LPxuU", rune(text[i+1])) {
			return at(source, line, utf8.RuneCountInString(text[:i]), 2, diag.Syntax,
				"\\"+text[i+1:i+2]+" is no escape of a double-quoted string").
				WithHint("single quotes take backslashes as they are")
		}
		i++
	}
	return nil
}

func tooDeep(source *diag.Source, line int, text, _ string) *diag.Diagnostic {
	return at(source, line, indentation(text), 1, diag.TooDeep, "mappings and lists nest too deep here")
}

func badIndentation(source *diag.Source, line int, text, _ string) *diag.Diagnostic {
	return at(source, line, indentation(text), 1, diag.Syntax, "the indentation of this line fits no line above it").
		WithHint("keys of one mapping, and the dashes of one list, stand in one column")
}

func missingColon(source *diag.Source, line int, text, _ string) *diag.Diagnostic {
	return at(source, line, indentation(text), utf8.RuneCountInString(strings.TrimSpace(text)), diag.Syntax,
		"a key without \":\"").WithHint("or, if it goes on with the line above, it needs that line's indentation")
}

func flowTrouble(source *diag.Source, line int, text, _ string) *diag.Diagnostic {
	if i := strings.Index(text, "? "); i >= 0 {
		return at(source, line, utf8.RuneCountInString(text[:i]), 1, diag.Syntax, "\"? \" inside {} or [] begins a key to YAML").
			WithHint("put the expression into quotes: \"$(...)\"")
	}
	if place := bareExpression.FindStringIndex(text); place != nil {
		return at(source, line, utf8.RuneCountInString(text[:place[0]]), utf8.RuneCountInString(text[place[0]:place[1]]), diag.Syntax,
			"inside {} or [] this ends at the first bracket, comma or quote").
			WithHint("put the expression into quotes: \"$(...)\"")
	}
	if place := bracketInWord.FindStringIndex(text); place != nil {
		word := text[place[0]:place[1]]
		return at(source, line, utf8.RuneCountInString(text[:place[0]]), utf8.RuneCountInString(word), diag.Syntax,
			"inside {} or [] a value without quotes ends at a bracket").WithHint("put it into quotes: \"%s..]\"", word)
	}
	if place := colonInFlowValue.FindStringSubmatchIndex(text); place != nil {
		return at(source, line, utf8.RuneCountInString(text[:place[2]]), 1, diag.Syntax,
			"a second \": \" in one value").WithHint("a \",\" is missing before the key, or the value needs quotes")
	}
	return at(source, line, indentation(text), 1, diag.Syntax, "a \",\" or a closing bracket is missing in this line")
}

var (
	// bareExpression is $( outside quotes up to the character that ends a plain value in flow style.
	bareExpression = regexp.MustCompile(`\$\([^"'\[\]{},]*["'\[\]{},]`)
	// bracketInWord is a name with an index, client[2], which only quotes keep together in flow style.
	bracketInWord = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*\[`)
	// colonInFlowValue is "key: some words key2:" with the last colon as its group.
	colonInFlowValue = regexp.MustCompile(`: [^,"'\[\]{}:]+(:) `)
)

func dashInValue(source *diag.Source, line int, text, _ string) *diag.Diagnostic {
	column := strings.Index(text, ": - ")
	if column < 0 {
		return badIndentation(source, line, text, "")
	}
	return at(source, line, utf8.RuneCountInString(text[:column+2]), 1, diag.Syntax, "a list cannot begin in the line of its key").
		WithHint("begin it in the next line, or write [a, b]")
}

func afterEnd(source *diag.Source, line int, text, _ string) *diag.Diagnostic {
	return at(source, line, indentation(text), 1, diag.Syntax, "the document has ended before this, so it belongs to nothing")
}

func indentation(text string) int { return len(text) - len(strings.TrimLeft(text, " ")) }

func between(text, open, end string) string {
	_, rest, _ := strings.Cut(text, open)
	inner, _, _ := strings.Cut(rest, end)
	return inner
}
