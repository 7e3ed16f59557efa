package hostfuncs

import "testing"

func TestHandles(t *testing.T) {
	table := handleTable[string]{kind: kindMR, budget: NewBudget(Limits{}), first: 7}
	first, ok := table.add("first", Cost{})
	if !ok || int32(first) <= 0 {
		t.Fatalf("handle %#x, %v", first, ok)
	}
	second, _ := table.add("second", Cost{})
	for handle, want := range map[Handle]string{first: "first", second: "second"} {
		if got, ok := table.get(handle); !ok || got != want {
			t.Errorf("handle %#x is %q, %v", handle, got, ok)
		}
	}
	table.remove(first)
	reused, _ := table.add("third", Cost{})
	if reused&0xffff != first&0xffff {
		t.Errorf("the slot of %#x was not used again, but %#x", first, reused)
	}

	foreign := handleTable[string]{kind: kindMR, budget: NewBudget(Limits{}), first: 7 + 97}
	ofAnother, _ := foreign.add("foreign", Cost{})
	otherKind := handleTable[string]{kind: kindCQ, budget: NewBudget(Limits{}), first: 7}
	ofAnotherKind, _ := otherKind.add("a CQ", Cost{})
	for name, handle := range map[string]Handle{
		"none": 0, "stale": first, "of another guest": ofAnother, "of another kind": ofAnotherKind,
		"beyond the table": first | 0xffff, "garbage": 0xffffffff,
	} {
		if got, ok := table.get(handle); ok {
			t.Errorf("%s: %#x is %q", name, handle, got)
		}
	}
}

func TestHandlesOfOneKindEnd(t *testing.T) {
	table := handleTable[int]{kind: kindQP, budget: NewBudget(Limits{}), first: generationMask}
	for n := range 1 << indexBits {
		if handle, ok := table.add(n, Cost{}); !ok || int32(handle) <= 0 {
			t.Fatalf("the %dth handle is %#x, %v", n, handle, ok)
		}
	}
	if handle, ok := table.add(0, Cost{}); ok {
		t.Errorf("one too many: %#x", handle)
	}
	if table.count() != 1<<indexBits {
		t.Errorf("%d handles", table.count())
	}
}

func TestGenerationsWrap(t *testing.T) {
	table := handleTable[int]{kind: kindQP, budget: NewBudget(Limits{}), first: 1}
	seen := make(map[Handle]bool)
	for range 1 << generationBits {
		handle, _ := table.add(0, Cost{})
		if seen[handle] {
			t.Fatalf("%#x came back before the generations were used up", handle)
		}
		seen[handle] = true
		table.remove(handle)
	}
}

func TestInstancesBeginWithDifferentGenerations(t *testing.T) {
	provider := newInstance(t, 4096, Config{}).provider
	seen := make(map[uint32]uint32)
	for serial := range uint32(generationMask) {
		i := NewInstance(Config{Provider: provider, Serial: serial})
		first := i.channels.first
		if other, ok := seen[first]; ok {
			t.Fatalf("instances %d and %d both begin with %d", serial, other, first)
		}
		if first == 0 || first > generationMask {
			t.Fatalf("instance %d begins with %d", serial, first)
		}
		seen[first] = serial
	}
}
