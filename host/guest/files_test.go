package guest

import (
	"errors"
	"io/fs"
	"slices"
	"syscall"
	"testing"
	"testing/fstest"

	"rdmarun/hostfuncs"
)

// A guest's files are a read-only file system; open files count.
func TestFiles(t *testing.T) {
	budget := hostfuncs.NewBudget(hostfuncs.Limits{Files: 3})
	f := newFiles(map[string]string{"etc/peer.conf": "port", "etc/keys/a": "", "b": "bytes"}, budget)
	if err := fstest.TestFS(
		&files{budget: hostfuncs.NewBudget(hostfuncs.Limits{}), nodes: f.nodes}, "etc/peer.conf", "etc/keys/a", "b",
	); err != nil {
		t.Error(err)
	}
	var opened []fs.File
	for range 3 {
		file, err := f.Open("b")
		if err != nil {
			t.Fatal(err)
		}
		opened = append(opened, file)
	}
	if _, err := f.Open("b"); !errors.Is(err, syscall.EMFILE) || !f.full {
		t.Errorf("a fourth file: %v", err)
	}
	for _, file := range slices.Concat(opened, opened) { // what is closed twice is credited once
		_ = file.Close()
	}
	if used := budget.Used(); used != (hostfuncs.Cost{}) {
		t.Errorf("after all: %+v", used)
	}
	if newFiles(nil, budget) != nil {
		t.Error("a guest without files has a file system")
	}
}
