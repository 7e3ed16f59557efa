package scenario_test

import (
	"strings"
	"testing"

	"rdmarun/host/record"
	"rdmarun/host/scenario"
)

// TestGuestCall calls functions of a guest that waits at a barrier.
func TestGuestCall(t *testing.T) {
	seen := &collector{}
	_, err := scenario.Run(t.Context(), load(t, nil, "testdata/run/guest_call.yaml"), scenario.RunConfig{
		Open: scenario.OpenSoft, ProviderName: "soft", Consumers: []record.Consumer{seen},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "expected 3, got 2", "unreachable", "does not run"} {
		result, text := seen.results[i], ""
		if len(result.Failures) > 0 {
			f := result.Failures[0]
			text = f.What + " expected " + f.Expected + ", got " + f.Got
		}
		if (text == "") != (want == "") || !strings.Contains(text, want) {
			t.Errorf("%s: %q, want %q", result.Name, text, want)
		}
	}
}
