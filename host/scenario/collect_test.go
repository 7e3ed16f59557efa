package scenario_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rdmarun/host/scenario"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
)

func write(t testing.TB, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

const good = "rdmarun: v1\nsteps:\n  - log: hello\n"

func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/b.yaml", good)
	write(t, dir+"/a/c.yml", "# a comment first\n"+good)
	write(t, dir+"/compose.yaml", "services: {}\n")
	write(t, dir+"/.hidden/d.yaml", good)
	write(t, dir+"/notes.txt", good)
	write(t, dir+"/lib/cm.yaml", "rdmarun: v1\nfragments:\n  f: {do: [{log: a}]}\n")
	checked := scenario.Check([]string{dir, dir + "/b.yaml"}, scenario.Params{})
	var names []string
	for _, s := range checked.Scenarios {
		name, _ := filepath.Rel(dir, s.Path)
		if s.Named {
			t.Errorf("%s was not named first", name)
		}
		if s.Library != (name == "lib/cm.yaml") {
			t.Errorf("%s: library %v", name, s.Library)
		}
		names = append(names, name)
	}
	if strings.Join(names, " ") != "a/c.yml b.yaml lib/cm.yaml" || checked.Errors.Len() > 0 {
		t.Error(names, checked.Errors.Sorted())
	}
}

// TestAllErrors shows the errors of all files, not of the first.
func TestAllErrors(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/1.yaml", "rdmarun: v1\nsteps:\n  - lgo: a\n  - lgo: b\n")
	write(t, dir+"/2.yaml", "rdmarun: v1\nsteps: [\n")
	checked := scenario.Check([]string{dir, dir + "/3.yaml", dir + "/nowhere/4.yaml"}, scenario.Params{})
	var codes []string
	for _, d := range checked.Errors.Sorted() {
		codes = append(codes, d.Code.Number())
	}
	if strings.Join(codes, " ") != "E0108 E0108 E0001 E0012 E0012" {
		t.Error(codes)
	}
}

func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/rping.yaml", good)
	for path, hint := range map[string]string{
		dir + "/ripng.yaml":    "did you mean",
		dir + "/no/where.yaml": "there is no directory",
	} {
		checked := scenario.Check([]string{path}, scenario.Params{})
		list := checked.Errors.Sorted()
		if len(list) != 1 || list[0].Code != diag.Unreadable || !strings.Contains(list[0].Hint, hint) {
			t.Errorf("%s: %v", path, list)
		}
	}
}

func TestTooLarge(t *testing.T) {
	path := write(t, t.TempDir()+"/large.yaml", "rdmarun: v1\n"+strings.Repeat("# comment\n", syntax.MaxBytes/5))
	list := scenario.Check([]string{path}, scenario.Params{}).Errors.Sorted()
	if len(list) != 1 || list[0].Code != diag.TooLarge {
		t.Error(list)
	}
}

func TestParameters(t *testing.T) {
	dir := t.TempDir()
	a := write(
		t, dir+"/a.yaml",
		"rdmarun: v1\nparams:\n  count: {type: int, default: 1, min: 1}\n  size: {type: size, default: 4}\nsteps:\n"+
			"  - log: a\n",
	)
	b := write(t, dir+"/b.yaml", "rdmarun: v1\nparams:\n  peer: {type: string}\nsteps:\n  - log: $(peer)\n")
	for name, test := range map[string]struct {
		params  map[string]string
		message string // of the error; "" for none
	}{
		"good":          {map[string]string{"count": "5", "size": "4KiB", "peer": "x"}, ""},
		"not a number":  {map[string]string{"count": "many"}, "not an integer"},
		"out of range":  {map[string]string{"count": "0"}, "at least 1"},
		"unit":          {map[string]string{"size": "4k"}, "no unit of size"},
		"unknown":       {map[string]string{"cuont": "1"}, "no scenario here"},
		"empty":         {map[string]string{"count": ""}, "not an integer"},
		"not evaluated": {map[string]string{"peer": "$(count)"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			checked := scenario.Check([]string{a, b}, scenario.Params{Given: test.params})
			if test.message == "" {
				if len(checked.ParamErrors) > 0 || checked.Errors.Len() > 0 {
					t.Error(checked.ParamErrors, checked.Errors.Sorted())
				}
				return
			}
			if len(checked.ParamErrors) != 1 || !strings.Contains(checked.ParamErrors[0].Error(), test.message) {
				t.Error(checked.ParamErrors)
			}
		})
	}
}

// TestEveryCode checks that each code of a diagnostic has a title. A file in the corpus must show it, or a test by
// name here.
func TestEveryCode(t *testing.T) {
	// TestUnreadable, TestTooLarge
	elsewhere := map[string]bool{diag.Unreadable.Number(): true, diag.TooLarge.Number(): true}
	var all strings.Builder
	var shown []string
	for _, folder := range []string{"testdata/bad/*.txtar", "testdata/warn/*.txtar", "testdata/run/*.golden"} {
		files, err := filepath.Glob(folder)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", folder, err)
		}
		shown = append(shown, files...)
	}
	for _, file := range shown {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for code, title := range diag.Titles() {
		if title == "" {
			t.Errorf("%s has no title", code)
		}
		if !elsewhere[code] && !strings.Contains(all.String(), "["+code+"]: ") {
			t.Errorf("no bad file shows %s (%s)", code, title)
		}
	}
}

// TestNeeds lists what a scenario needs. That is the files of fragments, imported by another one or by their whole
// path, and modules of guests. Each is listed once, and nothing that is part of the program.
func TestNeeds(t *testing.T) {
	dir := t.TempDir()
	elsewhere := write(t, t.TempDir()+"/far.yaml", "rdmarun: v1\nfragments:\n  far: {do: [{log: far}]}\n")
	write(t, dir+"/lib/inner.yaml", "rdmarun: v1\nfragments:\n  inner: {do: [{log: inner}]}\n")
	write(
		t, dir+"/lib/outer.yaml",
		"rdmarun: v1\nimports: {inner: inner.yaml}\nfragments:\n  outer: {do: [{use: inner.inner}]}\n",
	)
	module, err := filepath.Abs("../guest/testdata/calls.wasm")
	if err != nil {
		t.Fatal(err)
	}
	path := write(t, dir+"/main.yaml", `rdmarun: v1
imports: {cm: std/cm, outer: lib/outer.yaml, again: lib/inner.yaml, far: `+elsewhere+`}
roles: {one: {guest: {module: `+module+`}}, two: {guest: {module: `+module+`}}}
steps: [{use: outer.outer}, {use: again.inner}, {use: far.far}]
`)
	want := []string{elsewhere, dir + "/lib/inner.yaml", dir + "/lib/outer.yaml", module}
	slices.Sort(want)
	got := load(t, nil, path)[0].Needs()
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("needs %q, want %q", got, want)
	}
}

// TestNeedsLocated finds the files of a guest's module where the names of files are others than those of the scenario.
func TestNeedsLocated(t *testing.T) {
	dir := t.TempDir()
	module, err := os.ReadFile("../guest/testdata/calls.wasm")
	if err != nil {
		t.Fatal(err)
	}
	text := "rdmarun: v1\nroles: {one: {guest: {module: calls.wasm}}}\nsteps: [{log: a}]\n"
	names := map[string]string{
		"/pack/case.yaml": write(t, dir+"/1", text), "/pack/calls.wasm": write(t, dir+"/2", string(module)),
		"/pack/calls.wasm.map": write(t, dir+"/3", "{}"),
	}
	locate := func(path string) string { return names[path] }
	checked, err := scenario.CheckIn(t.Context(), locate, []string{"/pack/case.yaml"}, scenario.Params{})
	if err != nil || checked.Errors.Len() > 0 {
		t.Fatal(err, checked.Errors.Sorted())
	}
	want := []string{names["/pack/calls.wasm"], names["/pack/calls.wasm.map"]}
	if got := checked.Scenarios[0].Needs(); !slices.Equal(got, want) {
		t.Errorf("needs %q, want %q", got, want)
	}
}
