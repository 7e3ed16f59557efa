package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestGeneratedFilesAreUpToDate(t *testing.T) {
	for folder, write := range outputs {
		want, err := generate(folder, write)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("../..", folder, output))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s/%s is not what go generate ./rdmacore writes (%v)", folder, output, err)
		}
	}
}
