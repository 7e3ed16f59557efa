package scenario_test

import (
	"strings"
	"testing"

	"rdmarun/host/scenario/record"
	"rdmarun/rdmacore"
)

// TestRoles runs what a role can be made of, and skips what this host or provider has not.
func TestRoles(t *testing.T) {
	const passed = ""
	huge := passed
	if pages, err := rdmacore.HugePages(); err != nil || pages.Free == 0 {
		huge = "huge pages"
	}
	for path, reasons := range map[string][]string{
		"roles.yaml":           {passed, passed, "provider=verbs, and this is provider soft", "provider=verbs, and this is provider soft"},
		"roles_elsewhere.yaml": {"spread: host"},
		"roles_huge.yaml":      {huge, "30720 huge pages"},
	} {
		t.Run(path, func(t *testing.T) {
			seen := &collector{}
			onOwn(t, "testdata/run/"+path, seen)
			if len(seen.results) != len(reasons) {
				t.Fatalf("%d results", len(seen.results))
			}
			for i, want := range reasons {
				result := seen.results[i]
				good := result.Status == record.Passed
				if want != passed {
					good = result.Status == record.Skipped && strings.Contains(result.Reason, want)
				}
				if !good {
					t.Errorf("%s: %s %q %+v", result.Name, result.Status, result.Reason, result.Failures)
				}
			}
		})
	}
}
