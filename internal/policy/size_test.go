package policy

import (
	"bytes"
	"path"
	"strings"
	"testing"
)

// maxLines is the size beyond which a file has more than one subject.
const maxLines = 600

func TestNoFileIsTooLong(t *testing.T) {
	for _, file := range sourceFiles(t) {
		if !isWrittenByHand(file) {
			continue
		}
		data := readSource(t, file)
		if isGenerated(data) {
			continue
		}
		if lines := bytes.Count(data, []byte("\n")); lines > maxLines {
			t.Errorf("%s has %d lines; at most %d: give its second subject a file of its own", file, lines, maxLines)
		}
	}
}

func isWrittenByHand(file string) bool {
	if strings.Contains(file, "testdata/") {
		return false
	}
	switch path.Ext(file) {
	case ".go", ".c", ".h", ".sh", ".mk", ".yaml", ".wat":
		return true
	}
	return path.Base(file) == "Makefile"
}

// isGenerated knows the line that Go's tools know (https://go.dev/s/generatedcode), in the comment
// style of any language, near the top.
func isGenerated(data []byte) bool {
	head := data[:min(len(data), 512)]
	return bytes.Contains(head, []byte("Code generated ")) && bytes.Contains(head, []byte("DO NOT EDIT."))
}
