// Package corpus reads the scenarios that tests pass through the checker. They are archives of a subject each
// (golang.org/x/tools/txtar), in which NAME.yaml is a case and NAME.golden the expected output. Other files are what
// cases import.
//
// A file that is no text, or does not end with a newline, is there as NAME.quoted, a string of Go.
package corpus

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

const quoted = ".quoted"

// Case is one scenario.
type Case struct {
	Name string // without .yaml
	Path string // as messages have it: that of a file in the archives' folder
	Text []byte
	Want string // what the checker says of it
	// Golden is the place of Want.
	Golden  string
	archive *archive
}

// Corpus is all archives of a folder, unpacked for a test.
type Corpus struct {
	Cases    []*Case
	folder   string
	unpacked string
	archives []*archive
}

type archive struct {
	path    string
	content *txtar.Archive
	changed bool
}

// Open unpacks the archives of a folder until the test ends.
func Open(t testing.TB, folder string) *Corpus {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	c := &Corpus{folder: folder, unpacked: t.TempDir()}
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		if filepath.Ext(path) != ".txtar" {
			t.Fatalf("%s would not be looked at: it belongs in the archive of its subject", path)
		}
		content, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		c.archives = append(c.archives, &archive{path: path, content: content})
	}
	for _, a := range c.archives {
		for _, file := range a.content.Files {
			c.unpack(t, a, file)
		}
	}
	slices.SortFunc(c.Cases, func(a, b *Case) int { return strings.Compare(a.Name, b.Name) })
	return c
}

func (c *Corpus) unpack(t testing.TB, a *archive, file txtar.File) {
	t.Helper()
	name, isQuoted := strings.CutSuffix(file.Name, quoted)
	text := file.Data
	if isQuoted {
		plain, err := strconv.Unquote(string(bytes.TrimSpace(text)))
		if err != nil {
			t.Fatalf("%s: %s: %v", a.path, file.Name, err)
		}
		text = []byte(plain)
	}
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".wasm":
	case ".golden":
		if _, ok := a.find(strings.TrimSuffix(name, ".golden") + ".yaml"); !ok {
			t.Fatalf("%s: %s is of no case", a.path, name)
		}
		return
	default:
		t.Fatalf("%s: what is %s? cases are .yaml, what they import .yml", a.path, name)
	}
	to := filepath.Join(c.unpacked, filepath.FromSlash(name))
	if _, err := os.Stat(to); err == nil {
		t.Fatalf("%s: another archive has %s, too", a.path, name)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if filepath.Ext(name) != ".yaml" {
		return
	}
	each := &Case{Name: strings.TrimSuffix(name, ".yaml"), Path: filepath.Join(c.folder, name), Text: text, archive: a}
	each.Golden = a.path + ": " + each.Name + ".golden"
	if at, ok := a.find(each.Name + ".golden"); ok {
		each.Want = string(a.content.Files[at].Data)
	}
	c.Cases = append(c.Cases, each)
}

// find is where a file is in the archive, quoted or not.
func (a *archive) find(name string) (at int, ok bool) {
	at = slices.IndexFunc(a.content.Files, func(file txtar.File) bool {
		return strings.TrimSuffix(file.Name, quoted) == name
	})
	return at, at >= 0
}

// Locate finds what the archives have under the paths that messages show; any other path is itself.
func (c *Corpus) Locate(path string) string {
	name, err := filepath.Rel(c.folder, path)
	if err != nil || !filepath.IsLocal(name) {
		return path
	}
	if at := filepath.Join(c.unpacked, name); exists(at) {
		return at
	}
	return path
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Update makes text the output of a case; Save writes it.
func (c *Corpus) Update(each *Case, text string) {
	a, name := each.archive, each.Name+".golden"
	if at, ok := a.find(name); ok {
		a.changed = a.changed || string(a.content.Files[at].Data) != text
		a.content.Files[at].Data = []byte(text)
		return
	}
	at, _ := a.find(each.Name + ".yaml")
	a.content.Files = slices.Insert(a.content.Files, at+1, txtar.File{Name: name, Data: []byte(text)})
	a.changed = true
}

// Save writes those archives that were updated.
func (c *Corpus) Save() error {
	for _, a := range c.archives {
		if !a.changed {
			continue
		}
		if err := os.WriteFile(a.path, txtar.Format(a.content), 0o644); err != nil {
			return err
		}
	}
	return nil
}
