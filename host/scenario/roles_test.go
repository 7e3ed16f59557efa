package scenario_test

import (
	"strings"
	"testing"

	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/rdmacore"
)

// TestCPUs runs threads where they shall, and says so; a CPU that is not there is the fault of the place.
func TestCPUs(t *testing.T) {
	for cpu, want := range map[string]string{"0": "", "1023": "role server: cpu: there is no CPU 1023"} {
		seen, all := &places{}, &collector{}
		_, err := scenario.Run(t.Context(), load(t, map[string]string{"cpu": cpu}, "testdata/run/roles_cpu.yaml"), scenario.RunConfig{
			Open: scenario.OpenSoft, ProviderName: "soft", Consumers: []record.Consumer{seen, all},
		})
		if result := all.results[0]; err != nil || !strings.Contains(result.Reason, want) || (result.Status == record.Passed) != (want == "") {
			t.Errorf("CPU %s: %v %s %q %+v", cpu, err, result.Status, result.Reason, result.Failures)
		}
		for _, role := range seen.roles {
			if role.CPUs != cpu {
				t.Errorf("%+v", role)
			}
		}
	}
}

// TestRoles runs what a role can be made of, and skips what this host or provider has not.
func TestRoles(t *testing.T) {
	const passed = ""
	huge := passed
	if pages, err := rdmacore.HugePages(); err != nil || pages.Free == 0 {
		huge = "huge pages"
	}
	for path, reasons := range map[string][]string{
		"roles.yaml":           {passed, passed, "provider=verbs, and this is provider soft", "provider=verbs, and this is provider soft"},
		"counters.yaml":        {passed, "device.counters, and the kernel counts for no device of provider soft"},
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
