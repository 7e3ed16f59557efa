// Package example has a runnable scenario for each word of the language.  A file has the examples of one subject; a
// case is an example of its name and of its tags.
package example

import (
	"embed"
	_ "embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
)

//go:embed *.yaml *.wat *.wasm *.conf
var files embed.FS

// Example is a scenario that shows some words.
type Example struct {
	// Title is the file's name without ending, and the case's.
	File, Title string
	// Words are those that it is an example of.
	Words []string
	// Text is a whole scenario: the file's head and this one case.
	Text string
	// Files are those that it imports, and modules with their sources: texts by names.
	Files map[string]string
}

// all is made once and never changes.
var all = sync.OnceValue(load)

// All lists the examples, those of the first steps before the others.
func All() []Example { return all() }

// Find is the example of a word, nil where there is none.
func Find(word string) *Example {
	for _, example := range All() {
		if slices.Contains(example.Words, word) {
			return &example
		}
	}
	return nil
}

func load() []Example {
	names, _ := fs.Glob(files, "*.yaml") // the pattern is good
	var examples []Example
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			continue // the files are in the program
		}
		examples = append(examples, cut(diag.NewSource(name, text))...)
	}
	return examples
}

// cut takes a file apart: an example is the text before the cases, with one of them.  The cases are a file's last key.
// A file of several cases that has tags itself is one example, for what is seen in several cases alone.
func cut(source *diag.Source) []Example {
	root := syntax.Parse(source, &diag.List{})
	name := strings.TrimSuffix(source.Name, path.Ext(source.Name))
	files := imported(root)
	addNamed(files, source.Text)
	cases := root.Get("cases")
	if cases == nil || root.Get("tags") != nil && len(cases.Items) > 1 {
		return []Example{{
			File: name, Title: title(root, name), Words: words(root.Get("tags")), Text: source.Text, Files: files,
		}}
	}
	head := lines(source, 1, cases.Items[0].Position.Line)
	var examples []Example
	for i, item := range cases.Items {
		end := source.Lines() + 1
		if i+1 < len(cases.Items) {
			end = cases.Items[i+1].Position.Line
		}
		called := title(item, name)
		examples = append(examples, Example{
			File: name, Title: called, Words: append([]string{called}, words(item.Get("tags"))...),
			Text: head + strings.TrimRight(lines(source, item.Position.Line, end), "\n") + "\n", Files: files,
		})
	}
	return examples
}

// lines is the text from one line to before another.
func lines(source *diag.Source, from, to int) string {
	var text strings.Builder
	for n := from; n < to; n++ {
		text.WriteString(strings.TrimRight(source.Line(n), " ") + "\n")
	}
	return text.String()
}

func title(node *syntax.Node, otherwise string) string {
	if name := node.Get("name"); name != nil {
		return name.Value
	}
	return otherwise
}

func words(tags *syntax.Node) []string {
	if tags == nil {
		return nil
	}
	var list []string
	for _, tag := range tags.Items {
		list = append(list, tag.Value)
	}
	return list
}

// imported reads the files that a file imports.
func imported(root *syntax.Node) map[string]string {
	texts := make(map[string]string)
	imports := root.Get("imports")
	if imports == nil {
		return texts
	}
	for _, pair := range imports.Pairs {
		text, err := files.ReadFile(pair.Value.Value)
		if err == nil {
			texts[pair.Value.Value] = string(text)
		}
	}
	return texts
}

// addNamed adds what is in this folder that a text names: guests, each with what it is assembled of, and files that
// they read.
func addNamed(texts map[string]string, text string) {
	read, _ := fs.Glob(files, "*.conf") // the pattern is good
	for _, name := range read {
		content, err := files.ReadFile(name)
		if err == nil && strings.Contains(text, "file: "+name) {
			texts[name] = string(content)
		}
	}
	modules, _ := fs.Glob(files, "*.wasm") // likewise
	for _, module := range modules {
		if !strings.Contains(text, "module: "+module) {
			continue
		}
		for _, name := range []string{module, strings.TrimSuffix(module, ".wasm") + ".wat"} {
			if content, err := files.ReadFile(name); err == nil {
				texts[name] = string(content)
			}
		}
	}
}

// codes has for each code of `rdmarun validate` a section "== CODE" with a scenario.  Several files begin each with
// "-- NAME --"; what is checked is Checked.
//
//go:embed codes.txt
var codes string

// Checked is the name of the file of a wrong or right example that is validated; it may use other files.
const Checked = "example.yaml"

// The marks begin the text that replaces the line before in a wrong scenario. It may have several lines.
const (
	wrongMark  = "#wrong "
	repeatMark = "#wrong*" // a number, and a text that is repeated so often
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

// OfCode is a scenario that has the error of a code, and one that is right. They are texts of files by their names,
// both nil where there is none.
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
	addNamed(texts, strings.Join(lines, "\n"))
	return texts
}
