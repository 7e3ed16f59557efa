package check

import (
	"math/rand/v2"
	"testing"
)

// TestSpansFindOverlaps compares the index with a search of all requests.
func TestSpansFindOverlaps(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	any := func() segment {
		at := span{random.Uint64N(1 << 14), 1 + random.Uint64N(1<<random.Uint64N(12))}
		return segment{span: at, key: uint32(random.Uint64N(2))}
	}
	var index spans
	var all []*request
	for range 5000 {
		if len(all) > 0 && random.IntN(2) == 0 {
			i := random.IntN(len(all))
			index.remove(all[i])
			all = append(all[:i], all[i+1:]...)
		} else if len(all) < 12 {
			r := &request{segments: []segment{any(), any()}}
			index.add(r)
			all = append(all, r)
		}
		s, want := any(), false
		for _, r := range all {
			for _, other := range r.segments {
				want = want || other.key == s.key && s.address < other.address+other.length &&
					other.address < s.address+s.length
			}
		}
		if found := index.find(s); (found != nil) != want {
			t.Fatalf("%+v: found %+v, and it overlaps: %v", s, found, want)
		}
	}
}

// A program that uses new memory for each message does not leave blocks without an end.
func TestSpansForget(t *testing.T) {
	var index spans
	for i := range uint64(4 * maxEmpty) {
		r := &request{segments: []segment{{span: span{i << 12, 64}, key: 1}}}
		index.add(r)
		index.remove(r)
	}
	if kept := len(index.sizes[6]); kept > maxEmpty {
		t.Errorf("%d empty blocks are kept", kept)
	}
}

// Segments at the end of the address space, and empty ones, are in bounds.
func TestSpansAtTheEnd(t *testing.T) {
	at := func(address, length uint64) segment { return segment{span: span{address, length}, key: 1} }
	var index spans
	r := &request{segments: []segment{at(1<<64-2, 1<<40), at(1<<64-1, 1), at(5, 0)}}
	index.add(r)
	if index.find(at(1<<64-1, 1)) != r || index.find(at(5, 1)) != nil {
		t.Error("not found, or found where nothing is")
	}
	index.remove(r)
	if index.find(at(1<<64-1, 1)) != nil {
		t.Error("found after it was removed")
	}
}
