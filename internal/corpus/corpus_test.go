package corpus

import (
	"os"
	"path/filepath"
	"testing"
)

const archived = `-- a.yaml --
imports: {b: lib/b.yml}
-- a.golden --
said of a
-- odd.yaml.quoted --
"\xff"
-- lib/b.yml --
library
`

func TestCorpus(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "subject.txtar")
	if err := os.WriteFile(path, []byte(archived), 0o600); err != nil {
		t.Fatal(err)
	}
	c := Open(t, folder)
	if len(c.Cases) != 2 || c.Cases[0].Name != "a" || c.Cases[1].Name != "odd" {
		t.Fatalf("%+v", c.Cases)
	}
	if a := c.Cases[0]; a.Path != filepath.Join(folder, "a.yaml") || a.Want != "said of a\n" ||
		string(a.Text) != "imports: {b: lib/b.yml}\n" {
		t.Errorf("%+v", a)
	}
	if odd := c.Cases[1]; string(odd.Text) != "\xff" || odd.Want != "" {
		t.Errorf("%+v", odd)
	}
	for _, name := range []string{"a.yaml", "odd.yaml", "lib/b.yml"} {
		if located := c.Locate(filepath.Join(folder, name)); located == filepath.Join(folder, name) ||
			!exists(located) {
			t.Errorf("%s is located at %s", name, located)
		}
	}
	for _, other := range []string{
		filepath.Join(folder, "none.yaml"), filepath.Join(folder, "..", "a.yaml"), "a.yaml",
	} {
		if located := c.Locate(other); located != other {
			t.Errorf("%s is located at %s", other, located)
		}
	}
}

func TestUpdate(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "subject.txtar")
	if err := os.WriteFile(path, []byte(archived), 0o600); err != nil {
		t.Fatal(err)
	}
	c := Open(t, folder)
	c.Update(c.Cases[0], "said anew\n")
	c.Update(c.Cases[1], "said of odd\n")
	if err := c.Save(); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const want = `-- a.yaml --
imports: {b: lib/b.yml}
-- a.golden --
said anew
-- odd.yaml.quoted --
"\xff"
-- odd.golden --
said of odd
-- lib/b.yml --
library
`
	if string(written) != want {
		t.Errorf("written is\n%s", written)
	}
}
