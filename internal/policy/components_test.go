package policy

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A component of the C core is a folder that is a Go package, so that Go builds it, caches it, and refuses circles.
type component struct {
	folder  string   // from rdmacore
	doc     string   // its doc.go
	imports []string // components, from rdmacore
	files   []string // .c and .h, from rdmacore
}

// components are all of them.
func components(t *testing.T) map[string]*component {
	t.Helper()
	found := map[string]*component{}
	for _, file := range goFiles(t) {
		folder, inCore := strings.CutPrefix(file.directory(), "rdmacore/")
		if !inCore || path.Base(file.path) != "doc.go" {
			continue
		}
		r := &component{folder: folder, doc: string(readSource(t, file.path))}
		for imported := range file.imports() {
			if ours, isComponent := strings.CutPrefix(imported, module+"/rdmacore/"); isComponent {
				r.imports = append(r.imports, ours)
			}
		}
		for _, pattern := range []string{"*.c", "*.h"} {
			paths, err := filepath.Glob(filepath.Join(root, "rdmacore", folder, pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, each := range paths {
				r.files = append(r.files, path.Join(folder, filepath.Base(each)))
			}
		}
		found[folder] = r
	}
	if len(found) < 10 {
		t.Fatalf("only %d components were found under rdmacore", len(found))
	}
	return found
}

var (
	cgoFlags = regexp.MustCompile(`(?m)^// #cgo CFLAGS: (.*)$`)
	embeds   = regexp.MustCompile(`(?m)^//go:embed (.*)$`)
)

// All components build their C files alike, and each embeds all of its own: Go's build cache sees nothing else.
func TestComponentsAreBuiltAlike(t *testing.T) {
	const flags = " -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror"
	for folder, r := range components(t) {
		want := "-I${SRCDIR}" + strings.Repeat("/..", 1+strings.Count(folder, "/")) + flags
		if got := cgoFlags.FindStringSubmatch(r.doc); got == nil || got[1] != want {
			t.Errorf("rdmacore/%s/doc.go: flags %q, want %q", folder, got, want)
		}
		patterns := embeds.FindStringSubmatch(r.doc)
		if patterns == nil {
			t.Errorf("rdmacore/%s/doc.go embeds nothing, so that a change of C is not built", folder)
			continue
		}
		for _, file := range r.files {
			if !slices.Contains(strings.Fields(patterns[1]), "*"+path.Ext(file)) {
				t.Errorf(
					"rdmacore/%s/doc.go does not embed *%s: a change of %s is not built", folder, path.Ext(file), file,
				)
			}
		}
	}
}

// fileList is one row of a component's list of its files: names, and what they are.
var fileList = regexp.MustCompile(`(?m)^//   - ([\w, ]+): `)

// The list of a component's files, where a reader begins, has each file, and each calls only files below it.
func TestComponentsListTheirFiles(t *testing.T) {
	below := callsOf(cFiles(t, parts[0]))
	for folder, r := range components(t) {
		if len(r.files) <= 7 {
			continue // they say enough themselves
		}
		place := map[string]int{}
		for row, match := range fileList.FindAllStringSubmatch(r.doc, -1) {
			for name := range strings.SplitSeq(match[1], ", ") {
				if _, twice := place[path.Join(folder, name)]; twice {
					t.Errorf("rdmacore/%s/doc.go lists %s twice", folder, name)
				}
				place[path.Join(folder, name)] = 1 + row
			}
		}
		for _, file := range r.files {
			name := strings.TrimSuffix(file, path.Ext(file))
			if place[name] == 0 {
				t.Errorf("rdmacore/%s/doc.go does not list %s", folder, path.Base(name))
			}
			for _, other := range below[name] {
				if path.Dir(other) == folder && place[other] <= place[name] {
					t.Errorf(
						"rdmacore/%s/doc.go: %s calls %s, which is not below it", folder, path.Base(name),
						path.Base(other),
					)
				}
			}
		}
		for name := range place {
			if _, there := below[name]; !there {
				t.Errorf("rdmacore/%s/doc.go lists %s, which is not a file", folder, path.Base(name))
			}
		}
	}
}

// A change of a header must build every package with a file that includes it, at any depth. Such a package imports the
// package of the header, and none that it does not need.
func TestComponentsImportWhatTheyInclude(t *testing.T) {
	all := components(t)
	calls := componentsCalled(t)
	for folder, r := range all {
		included := componentsIncluded(t, r)
		for name := range included {
			if _, isComponent := all[name]; !isComponent {
				t.Errorf("%s includes headers of rdmacore/%s, which is no component", folder, name)
			}
			if !slices.Contains(r.imports, name) {
				t.Errorf("rdmacore/%s/doc.go must import %s: its files include headers of it", folder, name)
			}
		}
		for _, name := range r.imports {
			if !included[name] && !calls[folder][name] {
				t.Errorf("rdmacore/%s/doc.go imports %s, of which it includes and calls nothing", folder, name)
			}
		}
		for name := range calls[folder] {
			if !slices.Contains(r.imports, name) {
				t.Errorf("rdmacore/%s calls functions of %s and does not import it", folder, name)
			}
		}
	}
}

// borders are the headers of components that have private ones, too: other components include these alone.
var borders = map[string]string{
	"rdmacore/soft/cm":   "calls.h",
	"rdmacore/soft/ipc":  "ipc.h",
	"rdmacore/soft/qp":   "verbs.h",
	"rdmacore/soft/rdma": "rdma.h",
	"rdmacore/soft/udp":  "udp.h",
}

var includedHeader = regexp.MustCompile(`(?m)^#include "(soft/[^"]+)"`)

func TestComponentsIncludeBordersOfOthers(t *testing.T) {
	found := map[string]bool{}
	for folder, r := range components(t) {
		for _, file := range r.files {
			text := string(readSource(t, path.Join("rdmacore", file)))
			for _, match := range includedHeader.FindAllStringSubmatch(text, -1) {
				component, header := path.Split("rdmacore/" + match[1])
				component = path.Clean(component)
				border, bounded := borders[component]
				if !bounded || component == "rdmacore/"+folder {
					continue
				}
				found[component] = true
				if header != border {
					t.Errorf("rdmacore/%s includes %s/%s: include %s, its border", file, component, header, border)
				}
			}
		}
	}
	for component := range borders {
		if !found[component] {
			t.Errorf("no other component includes the border of %s", component)
		}
	}
}

// componentsIncluded are the components of the headers that the compiler reads for r, except r itself.
func componentsIncluded(t *testing.T, r *component) map[string]bool {
	t.Helper()
	included, read := map[string]bool{}, map[string]bool{}
	for next := slices.Clone(r.files); len(next) > 0; {
		file := next[0]
		next = next[1:]
		if read[file] {
			continue
		}
		read[file] = true
		if folder := path.Dir(file); folder != r.folder {
			included[folder] = true
		}
		for _, match := range ourHeader.FindAllSubmatch(readSource(t, path.Join("rdmacore", file)), -1) {
			next = append(next, string(match[1]))
		}
	}
	return included
}

// ourHeader is an include of a header of the core.  Its path begins in rdmacore.
var ourHeader = regexp.MustCompile(`(?m)^#include "([^"]+)"`)

// componentsCalled has for each component the other components with the functions that it names.
func componentsCalled(t *testing.T) map[string]map[string]bool {
	t.Helper()
	called := map[string]map[string]bool{}
	for file, below := range callsOf(cFiles(t, parts[0])) {
		folder := path.Dir(file)
		if called[folder] == nil {
			called[folder] = map[string]bool{}
		}
		for _, other := range below {
			if path.Dir(other) != folder {
				called[folder][path.Dir(other)] = true
			}
		}
	}
	return called
}

// Go's own word on it: an edit of a header of the connection manager builds the components above it, and no other.
func TestEditsOfHeadersAreBuilt(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a part of the core")
	}
	header, err := filepath.Abs(filepath.Join(root, "rdmacore/soft/cm/id.h"))
	if err != nil {
		t.Fatal(err)
	}
	edited, overlay := filepath.Join(t.TempDir(), "id.h"), filepath.Join(t.TempDir(), "overlay.json")
	text := fmt.Sprintf("%s\n/* edited at %d */\n", readSource(t, "rdmacore/soft/cm/id.h"), time.Now().UnixNano())
	write(t, edited, text)
	write(t, overlay, fmt.Sprintf(`{"Replace": {%q: %q}}`, header, edited))

	built(t)
	want := map[string]bool{"soft/cm": true, "soft/rdma": true, "soft": true}
	if got := built(t, "-overlay", overlay); !maps.Equal(got, want) {
		t.Errorf(
			"after an edit of soft/cm/id.h Go builds %v, want %v", slices.Sorted(maps.Keys(got)),
			slices.Sorted(maps.Keys(want)),
		)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// built are the components that Go builds for rdmacore/soft because it has no result of an earlier time.
func built(t *testing.T, flags ...string) map[string]bool {
	t.Helper()
	command := exec.Command(
		"go", append(append([]string{"build", "-v", "-trimpath", "-buildvcs=false"}, flags...), "./rdmacore/soft")...,
	)
	command.Dir = root
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, output)
	}
	found := map[string]bool{}
	for line := range strings.Lines(string(output)) {
		if folder, isComponent := strings.CutPrefix(strings.TrimSpace(line), module+"/rdmacore/"); isComponent {
			found[folder] = true
		}
	}
	return found
}
