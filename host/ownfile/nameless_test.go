package ownfile_test

import (
	"io"
	"os"
	"testing"

	"rdmarun/host/ownfile"
)

// TestNameless writes to files without a name, and reads it again: in the folder of temporary files, and where that is
// none.
func TestNameless(t *testing.T) {
	for name, folder := range map[string]string{"on disk": t.TempDir(), "in memory": "/proc/none"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", folder)
			file, err := ownfile.Nameless(os.O_APPEND)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			for range 2 {
				if _, err := file.WriteString("word"); err != nil {
					t.Fatal(err)
				}
				if _, err := file.Seek(0, io.SeekStart); err != nil {
					t.Fatal(err)
				}
			}
			text, err := io.ReadAll(file)
			if string(text) != "wordword" || err != nil {
				t.Errorf("%q, %v", text, err)
			}
			if entries, err := os.ReadDir(folder); name == "on disk" && (len(entries) > 0 || err != nil) {
				t.Errorf("left: %v, %v", entries, err)
			}
		})
	}
}
