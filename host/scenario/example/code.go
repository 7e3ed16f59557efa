package example

import (
	_ "embed"
	"strings"
)

//go:embed codes.txt
var codes string

// wrongMark begins what stands in a wrong scenario in place of the line before.
const wrongMark = "#wrong "

// Codes lists the codes of `rdmarun validate` that have an example.
func Codes() []string {
	var list []string
	for _, part := range strings.Split(codes, "\n== ")[1:] {
		code, _, _ := strings.Cut(part, "\n")
		list = append(list, code)
	}
	return list
}

// OfCode is a scenario that has the error of a code, and one that is right; both empty where there is none.
func OfCode(code string) (wrong, right string) {
	_, text, found := strings.Cut(codes, "\n== "+code+"\n")
	if !found {
		return "", ""
	}
	text, _, _ = strings.Cut(text, "\n== ")
	var wrongs, rights []string
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		indent, mistake, isWrong := strings.Cut(line, wrongMark)
		if !isWrong {
			wrongs, rights = append(wrongs, line), append(rights, line)
			continue
		}
		wrongs[len(wrongs)-1] = indent + mistake
	}
	return strings.Join(wrongs, "\n") + "\n", strings.Join(rights, "\n") + "\n"
}
