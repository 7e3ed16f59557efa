package testbed

import "testing"

// A barrier without a waiter is deleted; one at which a step waits is not.
func TestBarriersThatAreLeft(t *testing.T) {
	b := barriers{byName: make(map[string]*barrier)}
	for _, name := range []string{"a", "b", "a"} {
		b.arrive(name, "guest")
		if at := b.waitingAt("guest"); at != name {
			t.Errorf("the guest waits at %q, not %q", at, name)
		}
		b.leave(name, "guest")
	}
	if len(b.byName) != 0 {
		t.Errorf("%d barriers are kept", len(b.byName))
	}
	here := b.arriveBranches(Gathering{Name: "a"})
	b.arrive("a", "guest")
	b.arrive("a", "other")
	b.leave("a", "guest")
	b.leave("a", "other")
	b.leave("a", "other")
	if b.byName["a"] != here || len(here.guests) != 0 {
		t.Errorf("the step waits at another barrier, or %q wait with it", here.guests)
	}
	b.leaveStep(here)
}
