// Package standard has fragments that a scenario can import without a file, std/cm.
package standard

import (
	"embed"
	"io/fs"
	"path"
	"strings"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
)

//go:embed *.yaml
var files embed.FS

// prefix distinguishes an import of this package from a path: a file of that name is ./std/cm.
const prefix = "std/"

// Is reports whether an import names a library of this package, one that exists or not.
func Is(path string) bool { return strings.HasPrefix(path, prefix) }

// Names lists the libraries, std/cm.
func Names() []string {
	names, _ := fs.Glob(files, "*.yaml") // the pattern is good
	for i, name := range names {
		names[i] = prefix + strings.TrimSuffix(name, path.Ext(name))
	}
	return names
}

// Text is the file of a library; false when there is none of that name.
func Text(name string) (text []byte, found bool) {
	base, isStandard := strings.CutPrefix(name, prefix)
	if !isStandard || !fs.ValidPath(base) {
		return nil, false
	}
	text, err := files.ReadFile(base + ".yaml")
	return text, err == nil
}

// Fragment is a fragment of a library.
type Fragment struct {
	// Name is how it is used where the library is imported under its own name, cm.pair.
	Name, Doc string
	// Text is the fragment as its file has it.
	Text string
}

// Doc is what a library is for, in a line.
func Doc(name string) string {
	_, root := parsed(name)
	return line(root.Get("doc"))
}

// Fragments lists those of a library, in the order of its file.
func Fragments(name string) []Fragment {
	source, root := parsed(name)
	pairs := root.Get("fragments").Pairs
	fragments := make([]Fragment, len(pairs))
	for i, pair := range pairs {
		end := source.Lines() + 1
		if i+1 < len(pairs) {
			end = pairs[i+1].Key.Position.Line
		}
		var text strings.Builder
		for n := pair.Key.Position.Line; n < end; n++ {
			text.WriteString(source.Line(n) + "\n")
		}
		fragments[i] = Fragment{
			path.Base(name) + "." + pair.Key.Value, line(pair.Value.Get("doc")),
			strings.TrimRight(text.String(), "\n") + "\n",
		}
	}
	return fragments
}

// parsed is the file of a library that there is.
func parsed(name string) (*diag.Source, *syntax.Node) {
	text, _ := Text(name)
	source := diag.NewSource(name, text)
	return source, syntax.Parse(source, &diag.List{})
}

// line is a text of several lines as one.
func line(node *syntax.Node) string {
	if node == nil {
		return ""
	}
	return strings.Join(strings.Fields(node.Value), " ")
}
