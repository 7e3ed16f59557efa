package policy

import (
	"go/scanner"
	"go/token"
	"path"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	// maxColumns is the width that two files side by side, and a review in a browser, have room for.
	maxColumns = 120
	// tabColumns is the width of a tab.
	tabColumns = 4
)

// TestNoLineIsTooLong looks at Go files.  Raw strings may be longer: struct tags and scenarios in tests cannot be
// broken without another meaning.
func TestNoLineIsTooLong(t *testing.T) {
	files := 0
	for _, file := range sourceFiles(t) {
		if path.Ext(file) != ".go" || !isWrittenByHand(file) {
			continue
		}
		data := readSource(t, file)
		if isGenerated(data) {
			continue
		}
		files++
		raw := rawStringLines(data)
		for i, line := range strings.Split(string(data), "\n") {
			columns := utf8.RuneCountInString(line) + (tabColumns-1)*strings.Count(line, "\t")
			if columns > maxColumns && !raw[i+1] {
				t.Errorf("%s:%d has %d columns; at most %d: break the line", file, i+1, columns, maxColumns)
			}
		}
	}
	if files < 100 {
		t.Fatalf("only %d Go files were found", files)
	}
}

// rawStringLines are the numbers of the lines that have a part of a raw string.
func rawStringLines(data []byte) map[int]bool {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(data))
	var tokens scanner.Scanner
	tokens.Init(file, data, nil, 0)
	lines := make(map[int]bool)
	for {
		at, kind, text := tokens.Scan()
		switch {
		case kind == token.EOF:
			return lines
		case kind == token.STRING && strings.HasPrefix(text, "`"):
			for line := file.Line(at); line <= file.Line(at)+strings.Count(text, "\n"); line++ {
				lines[line] = true
			}
		}
	}
}
