package main

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// maxAtStart is how many bytes the variables of one package of this module may allocate when rdmarun starts.
const maxAtStart = 512 << 10

// TestStartsAreLight has each package of this project prepare little before main: every command pays for it, also one
// that runs a guest of a millisecond.  A regular expression of Unicode's letters took 13 ms and 10 MB.
func TestStartsAreLight(t *testing.T) {
	command := exec.Command(os.Args[0], "version")
	command.Env = append(os.Environ(), runAsRdmarun+"=1", "GODEBUG=inittrace=1")
	said, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	inits := regexp.MustCompile(`(?m)^init (rdmarun/\S+) .*, (\d+) bytes`).FindAllStringSubmatch(string(said), -1)
	if len(inits) < 10 {
		t.Fatalf("Go's runtime says it in another way: %s", said)
	}
	for _, each := range inits {
		if size, err := strconv.Atoi(each[2]); err != nil || size > maxAtStart {
			t.Errorf("%s allocates %s bytes at the start; %d are the most (%v)", each[1], each[2], maxAtStart, err)
		}
	}
}
