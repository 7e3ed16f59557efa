package scenario_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rdmarun/host/scenario"
	"rdmarun/host/scenario/diag"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestBadFiles holds every file of testdata/bad against the errors in the .golden file beside it.
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 150 {
		t.Fatalf("%d bad files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			checked := scenario.Check([]string{file}, scenario.Params{})
			if checked.Errors.Len() == 0 {
				t.Error("a bad file passes")
			}
			var text strings.Builder
			if err := checked.Errors.Render(&text, diag.Painter{}); err != nil {
				t.Fatal(err)
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".golden", text.String())
		})
	}
}

// TestWarnings holds every file of testdata/warn, which may run, against the warnings in the .golden file
// beside it.
func TestWarnings(t *testing.T) {
	files, err := filepath.Glob("testdata/warn/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			checked := scenario.Check([]string{file}, scenario.Params{})
			if checked.Errors.Len() > 0 || checked.Errors.Warnings() == 0 {
				t.Errorf("%d errors, %d warnings", checked.Errors.Len(), checked.Errors.Warnings())
			}
			var text strings.Builder
			if err := checked.Errors.Render(&text, diag.Painter{}); err != nil {
				t.Fatal(err)
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".golden", text.String())
		})
	}
}

// golden compares with a file, or writes it with -update.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		var g, w string
		if i < len(gotLines) {
			g = gotLines[i]
		}
		if i < len(wantLines) {
			w = wantLines[i]
		}
		if g != w {
			t.Errorf("%s:%d\n got: %q\nwant: %q", path, i+1, g, w)
			return
		}
	}
}
