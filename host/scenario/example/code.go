package example

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

// codes has for each code of `rdmarun validate` a section "== CODE" with a scenario.  Several files begin each with
// "-- NAME --"; what is checked is Checked.
//
//go:embed codes.txt
var codes string

// Checked is the name of the file of a wrong or right example that is validated; others stand beside it.
const Checked = "example.yaml"

// The marks begin what stands in a wrong scenario in place of the line before, of which there can be several lines.
const (
	wrongMark  = "#wrong "
	repeatMark = "#wrong*" // a number and a text that stands so often
)

// Codes lists the codes of `rdmarun validate` that have an example.
func Codes() []string {
	var list []string
	for _, part := range strings.Split(codes, "\n== ")[1:] {
		code, _, _ := strings.Cut(part, "\n")
		list = append(list, code)
	}
	return list
}

// OfCode is a scenario that has the error of a code, and one that is right: texts of files by their names, both nil
// where there is none.
func OfCode(code string) (wrong, right map[string]string) {
	_, text, found := strings.Cut(codes, "\n== "+code+"\n")
	if !found {
		return nil, nil
	}
	text, _, _ = strings.Cut(text, "\n== ")
	var wrongs, rights []string
	replaced := false // the line before, by a mark
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		mistake, isWrong := mistakeOf(line)
		switch {
		case !isWrong:
			rights, wrongs = append(rights, line), append(wrongs, line)
		case replaced:
			wrongs = append(wrongs, mistake)
		default:
			wrongs[len(wrongs)-1] = mistake
		}
		replaced = isWrong
	}
	return textsOf(wrongs), textsOf(rights)
}

// mistakeOf is what a line with a mark puts into a wrong scenario.
func mistakeOf(line string) (string, bool) {
	if indent, mistake, marked := strings.Cut(line, wrongMark); marked {
		return indent + mistake, true
	}
	indent, mistake, marked := strings.Cut(line, repeatMark)
	if !marked {
		return "", false
	}
	number, mistake, _ := strings.Cut(mistake, " ")
	times, err := strconv.Atoi(number)
	if err != nil {
		panic(fmt.Sprintf("%q of codes.txt wants a number", line)) // the file is in the program, a test reads all of it
	}
	return indent + strings.Repeat(mistake, times), true
}

// textsOf takes lines apart at the names of files, and adds the modules that they name.
func textsOf(lines []string) map[string]string {
	texts := make(map[string]string)
	name := Checked
	for _, line := range lines {
		if begin, isName := strings.CutPrefix(line, "-- "); isName && strings.HasSuffix(begin, " --") {
			name = strings.TrimSuffix(begin, " --")
			texts[name] = ""
			continue
		}
		texts[name] += line + "\n"
	}
	addModules(texts, strings.Join(lines, "\n"))
	return texts
}
