package scenario_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rdmarun/host/scenario/explain"
)

// TestRNRTimersAreThose holds the list of explain against what soft does: a send that finds no receive is repeated once,
// after the receiver's timer and no sooner or later.
func TestRNRTimersAreThose(t *testing.T) {
	times := explain.Times()
	at := slices.IndexFunc(times, func(each explain.Time) bool { return each.What == "RNR timers" })
	if at < 0 {
		t.Fatal("explain has no RNR timers")
	}
	_, list, _ := strings.Cut(times[at].Long, "): ")
	timers := strings.Split(list, ", ")
	if len(timers) != 32 {
		t.Fatalf("%d timers: %q", len(timers), list)
	}
	text := `rdmarun: v1
imports: {cm: std/cm}
defaults: {qp: {sig_all: true}}
roles: {server: {}, client: {buffers: {tx: {size: 8}}}}
steps:
  - {use: cm.listen}
`
	for code, timer := range timers {
		text += fmt.Sprintf(`  - {use: cm.connect, with: {ep: ep%[1]d, accept: {rnr_retry_count: 1}}}
  - {role: server, modify_qp: {ep: ep%[1]d, min_rnr_timer: %[1]d}}
  - {role: client, post_send: {ep: ep%[1]d, buffer: tx}}
  - {role: client, poll: {ep: ep%[1]d, cq: send}, expect: {status: RNR_RETRY_EXC_ERR}, took: {min: %[2]sms, max: %[2]sms}}
`, code, timer)
	}
	if shown := everywhere(t, text)["terminal"]; !strings.Contains(shown, "1 passed") {
		t.Error(shown)
	}
}
