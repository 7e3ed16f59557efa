package policy

import (
	"bytes"
	"path/filepath"
	"regexp"
	"testing"
)

// homePath is a path into a user's home folder.  (The character class keeps relative paths out.)
var homePath = regexp.MustCompile(`(^|[\s"'=:(` + "`" + `])/(home|root|Users)/[A-Za-z0-9_.]`)

// A path of one machine in the tree works on that machine only.
func TestNoPathsOfOneMachine(t *testing.T) {
	checkout, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range sourceFiles(t) {
		data := readSource(t, file)
		if bytes.IndexByte(data, 0) >= 0 {
			// A compiled guest; its builder leaves paths out (-trimpath), so they count there too.
			if bytes.Contains(data, []byte(checkout+"/")) {
				t.Errorf("%s (binary) holds this machine's path %s", file, checkout)
			}
			continue
		}
		for number, line := range bytes.Split(data, []byte("\n")) {
			if homePath.Match(line) || bytes.Contains(line, []byte(checkout+"/")) {
				t.Errorf("%s:%d: a path of one machine: %s", file, number+1, bytes.TrimSpace(line))
			}
		}
	}
}
