package verb

import (
	"errors"
	"reflect"
	"testing"

	"rdmarun/host/record"
	"rdmarun/host/scenario/mesh"
)

// TestMeshMeasures: thresholds get the figures of the last look at a pair.  Of a lost pair they get only the sizes with
// too few messages.
func TestMeshMeasures(t *testing.T) {
	size := func(bytes int64, tooFew bool) []*record.Measure {
		found := &record.Measure{}
		found.Size, found.TooFew = bytes, tooFew
		return []*record.Measure{found}
	}
	lost := errors.New("too few")
	pairs := []mesh.Pair{{From: 0, To: 1}, {From: 0, To: 2}, {From: 1, To: 2}, {From: 2, To: 3}}
	m := &meshing{
		rounds: []mesh.Round{pairs},
		ends:   func(from, to string) [2]string { return [2]string{from, to} },
		looks: [2]map[mesh.Pair]*look{
			{
				pairs[0]: {sizes: [][]*record.Measure{size(1, false), size(2, false)}},
				pairs[1]: {sizes: [][]*record.Measure{size(3, false), size(4, true)}, err: lost},
				pairs[2]: {sizes: [][]*record.Measure{size(5, false)}},
				pairs[3]: {sizes: [][]*record.Measure{size(6, false)}, err: errors.New("disconnected")},
			},
			{pairs[2]: {sizes: [][]*record.Measure{size(7, true)}, err: lost}},
		},
	}
	var got []int64
	for _, found := range m.measures() {
		got = append(got, found[0].Size)
	}
	if want := []int64{1, 2, 4, 7}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
	for i, want := range []int{2, 2, 1, 0} {
		if message := messageOf(pairs[i], m.looks[0][pairs[i]]); len(message.Sizes) != want {
			t.Errorf("%v is sent with %d sizes, not %d", pairs[i], len(message.Sizes), want)
		}
	}
}
