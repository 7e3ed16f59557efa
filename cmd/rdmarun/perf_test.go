package main

import (
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPerftestFlags compares the page about perftest's flags with what perftest itself says, and with the flags of
// perf.
func TestPerftestFlags(t *testing.T) {
	known := make(map[string]bool)
	letters := make(map[string]string) // rdmarun's, by perftest's letter
	for _, flag := range perftestFlags {
		letter, long, both := strings.Cut(flag.name, ", ")
		if !both {
			letter, long = "", flag.name
		}
		known[long] = true
		if letter != "" && strings.HasPrefix(flag.ours, letter+",") {
			letters[letter] = regexp.MustCompile(`--[-\w]+`).FindString(flag.ours)
		}
	}
	for _, program := range []string{"ib_write_bw", "ib_send_lat", "ib_send_bw", "ib_read_bw", "ib_atomic_bw"} {
		help, err := exec.CommandContext(t.Context(), program, "--help").CombinedOutput()
		if len(help) == 0 {
			t.Fatalf("%s: %v", program, err)
		}
		for _, found := range regexp.MustCompile(
			`(?m)^ +(?:-\w, )?(--[-\w]+)`,
		).FindAllStringSubmatch(string(help), -1) {
			if flag := found[1]; !known[flag] && !strings.Contains(flag, "aes") {
				t.Errorf("%s has %s, which the page does not map", program, flag)
			}
		}
	}
	flags := newPerfCommand(&app{env: map[string]string{}}).Flags()
	for letter, name := range letters {
		flag := flags.ShorthandLookup(strings.TrimPrefix(letter, "-"))
		if flag == nil || "--"+flag.Name != name {
			t.Errorf("the page says that %s is %s, and it is %v", letter, name, flag)
		}
	}
	if len(letters) < 15 {
		t.Errorf(
			"of perftest's letters the page finds only %d in perf: %q", len(letters), slices.Sorted(maps.Keys(letters)),
		)
	}
}
