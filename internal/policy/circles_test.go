package policy

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// parts are looked at one by one: the core, its tests, and the library that is preloaded into others' programs.  That
// has functions of the same names as the core's provider table.
var parts = [][]string{
	{"rdmacore/provider", "rdmacore/core", "rdmacore/measure", "rdmacore/verbs", "rdmacore/soft", "rdmacore/soft/*"},
	{"rdmacore/ctest/*"},
	{"rdmacore/preload"},
}

// A cFile of the C core is X.h with X.c.
type cFile struct {
	gives    map[string]bool // functions that others may call
	names    map[string]bool // every name in it, but for what it only declares
	includes map[string]bool // other files' headers
}

var (
	cComment     = regexp.MustCompile(`(?s)/\*.*?\*/`)
	cInclude     = regexp.MustCompile(`(?m)^#include "([\w/]+)\.h"`)
	cDeclaration = regexp.MustCompile(`(?m)^[a-z_][\w \t*]*?\b\w+\([^{};]*\);[ \t]*$`)
	cFunction    = regexp.MustCompile(`(?m)^[a-z_][\w \t*]*?\b(\w+)\([^;{}]*\)\n\{`)
	// Functions have names of structs, too, and heads of queue(3) name the struct of their entries.
	cTag  = regexp.MustCompile(`\b(?:struct|enum|union) \w+|\b(?:LIST|TAILQ)_(?:HEAD|ENTRY)\([^)]*\)`)
	cName = regexp.MustCompile(`\b[a-z]\w*_\w+\b`)
)

// The C core has no circles: a file uses only what is below it.  The compiler would not mind, but who reads one
// file of a circle has to read them all.
func TestCFilesHaveNoCircles(t *testing.T) {
	for _, graph := range parts {
		files := cFiles(t, graph)
		if len(files) < 5 {
			t.Fatalf("%v: only %d files were found", graph, len(files))
		}
		for _, circle := range circles(includesOf(files)) {
			t.Errorf("%v: headers include one another in a circle: %s", graph, strings.Join(circle, " -> "))
		}
		for _, circle := range circles(callsOf(files)) {
			t.Errorf("%v: functions call one another in a circle: %s", graph, strings.Join(circle, " -> "))
		}
	}
}

func TestCirclesAreFound(t *testing.T) {
	graph := map[string][]string{"top": {"left", "right"}, "left": {"low"}, "right": {"low"}, "low": nil}
	if found := circles(graph); len(found) != 0 {
		t.Errorf("circles of a graph that has none: %v", found)
	}
	graph["low"] = []string{"right"}
	want := []string{"low", "right", "low"}
	if found := circles(graph); len(found) != 1 || !slices.Equal(found[0], want) {
		t.Errorf("circles: %v, want %v alone", found, want)
	}
}

// cFiles are those of some folders, by the name that others include them by.
func cFiles(t *testing.T, folders []string) map[string]*cFile {
	t.Helper()
	files := map[string]*cFile{}
	for _, folder := range folders {
		paths, err := filepath.Glob(filepath.Join(root, folder, "*.[ch]"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name := nameOf(path)
			if files[name] == nil {
				files[name] = &cFile{gives: map[string]bool{}, names: map[string]bool{}, includes: map[string]bool{}}
			}
			files[name].read(cComment.ReplaceAllString(string(data), ""), filepath.Ext(path) == ".h")
		}
	}
	return files
}

// nameOf is how a header is included: from rdmacore, and by its own name alone in its own component.
func nameOf(path string) string {
	name, _ := strings.CutPrefix(filepath.ToSlash(path), root+"/rdmacore/")
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".c"), ".h")
	return strings.TrimPrefix(name, "preload/")
}

func (f *cFile) read(text string, header bool) {
	for _, match := range cInclude.FindAllStringSubmatch(text, -1) {
		f.includes[match[1]] = true
	}
	for _, match := range cFunction.FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(match[0], "static ") || header {
			f.gives[match[1]] = true
		}
	}
	text = cTag.ReplaceAllString(cDeclaration.ReplaceAllString(text, ""), "")
	for _, name := range cName.FindAllString(text, -1) {
		f.names[name] = true
	}
}

func includesOf(files map[string]*cFile) map[string][]string {
	arrows := map[string][]string{}
	for name, file := range files {
		arrows[name] = slices.Sorted(maps.Keys(file.includes))
	}
	return arrows
}

func callsOf(files map[string]*cFile) map[string][]string {
	givers := map[string]string{}
	for name, file := range files {
		for function := range file.gives {
			givers[function] = name
		}
	}
	arrows := map[string][]string{}
	for name, file := range files {
		below := map[string]bool{}
		for used := range file.names {
			if giver, ok := givers[used]; ok && !file.gives[used] {
				below[giver] = true
			}
		}
		arrows[name] = slices.Sorted(maps.Keys(below))
	}
	return arrows
}

// circles are ways from a file back to itself; without any, there are none.
func circles(arrows map[string][]string) (found [][]string) {
	done := map[string]bool{}
	var walk func(name string, way []string)
	walk = func(name string, way []string) {
		if at := slices.Index(way, name); at >= 0 {
			found = append(found, append(slices.Clone(way[at:]), name))
			return
		}
		if done[name] {
			return
		}
		for _, other := range arrows[name] {
			if other != name {
				walk(other, append(slices.Clone(way), name))
			}
		}
		done[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(arrows)) {
		walk(name, nil)
	}
	return found
}
