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

// A room of the C core is a folder that is a Go package, so that Go builds it, caches it, and refuses circles.
type room struct {
	folder  string   // from rdmacore
	doc     string   // its doc.go
	imports []string // rooms, from rdmacore
	files   []string // .c and .h, from rdmacore
}

// rooms are all of them.
func rooms(t *testing.T) map[string]*room {
	t.Helper()
	found := map[string]*room{}
	for _, file := range goFiles(t) {
		folder, inCore := strings.CutPrefix(file.directory(), "rdmacore/")
		if !inCore || path.Base(file.path) != "doc.go" {
			continue
		}
		r := &room{folder: folder, doc: string(readSource(t, file.path))}
		for imported := range file.imports() {
			if ours, isRoom := strings.CutPrefix(imported, module+"/rdmacore/"); isRoom {
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
		t.Fatalf("only %d rooms were found under rdmacore", len(found))
	}
	return found
}

var (
	cgoFlags = regexp.MustCompile(`(?m)^// #cgo CFLAGS: (.*)$`)
	embeds   = regexp.MustCompile(`(?m)^//go:embed (.*)$`)
)

// All rooms build their C files alike, and each embeds all of its own: Go's build cache sees nothing else.
func TestRoomsAreBuiltAlike(t *testing.T) {
	const flags = " -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror"
	for folder, r := range rooms(t) {
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

// fileList is one row of a room's list of its files: names, and what they are.
var fileList = regexp.MustCompile(`(?m)^//   - ([\w, ]+): `)

// The list of a component's files, where a reader begins, has each file, and each calls only files below it.
func TestRoomsListTheirFiles(t *testing.T) {
	below := callsOf(cFiles(t, houses[0]))
	for folder, r := range rooms(t) {
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
						"rdmacore/%s/doc.go: %s calls %s, which does not stand below it", folder, path.Base(name),
						path.Base(other),
					)
				}
			}
		}
		for name := range place {
			if _, there := below[name]; !there {
				t.Errorf("rdmacore/%s/doc.go lists %s, which is no file", folder, path.Base(name))
			}
		}
	}
}

// A change of a header must build every room with a file that includes it, however far below: such a room imports the
// room of the header, and none that it does not need.
func TestRoomsImportWhatTheyInclude(t *testing.T) {
	all := rooms(t)
	calls := roomsCalled(t)
	for folder, r := range all {
		included := roomsIncluded(t, r)
		for name := range included {
			if _, isRoom := all[name]; !isRoom {
				t.Errorf("%s includes headers of rdmacore/%s, which is no room", folder, name)
			}
			if !slices.Contains(r.imports, name) {
				t.Errorf("rdmacore/%s/doc.go must import %s, whose headers its files include", folder, name)
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

// roomsIncluded are the rooms of the headers that the compiler reads for r, except r itself.
func roomsIncluded(t *testing.T, r *room) map[string]bool {
	t.Helper()
	var sources []string
	for _, file := range r.files {
		if path.Ext(file) == ".c" {
			sources = append(sources, file)
		}
	}
	command := exec.Command("cc", append([]string{"-MM", "-D_GNU_SOURCE", "-I."}, sources...)...)
	command.Dir = filepath.Join(root, "rdmacore")
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v", command, err)
	}
	included := map[string]bool{}
	for _, word := range strings.Fields(string(output)) {
		if folder := path.Dir(word); path.Ext(word) == ".h" && folder != r.folder {
			included[folder] = true
		}
	}
	return included
}

// roomsCalled tells for each room in which other rooms the functions are that it names.
func roomsCalled(t *testing.T) map[string]map[string]bool {
	t.Helper()
	called := map[string]map[string]bool{}
	for file, below := range callsOf(cFiles(t, houses[0])) {
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

// Go's own word on it: an edit of a header of the connection manager builds the rooms above it, and no other.
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

// built are the rooms that Go builds for rdmacore/soft because it has no result of an earlier time.
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
		if folder, isRoom := strings.CutPrefix(strings.TrimSpace(line), module+"/rdmacore/"); isRoom {
			found[folder] = true
		}
	}
	return found
}
