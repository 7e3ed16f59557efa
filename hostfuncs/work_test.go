package hostfuncs

import (
	"context"
	"slices"
	"syscall"
	"testing"

	"rdmarun/rdmacore"
)

// TestBatches: requests with large buffers go to the core one by one. So an end of the guest need not wait for all of
// their copies. Others go in batches. A queue that posts all or none gets them at once, up to a limit.
func TestBatches(t *testing.T) {
	const wrsAt, sgesAt, count = 1 << 10, 1 << 16, 1025
	large := SGE{Length: 1<<16 + 1}
	i := newInstance(t, 1<<17, Config{})
	var sizes []int
	keep := func(_ *Instance, _ int, wrs []rdmacore.RecvWR, _ []rdmacore.SGE) (int, error) {
		sizes = append(sizes, len(wrs))
		return len(wrs), nil
	}
	all := func(result bool) func([]rdmacore.RecvWR, []rdmacore.SGE) bool {
		return func([]rdmacore.RecvWR, []rdmacore.SGE) bool { return result }
	}
	for name, test := range map[string]struct {
		sges  []SGE
		whole func([]rdmacore.RecvWR, []rdmacore.SGE) bool
		want  []int
	}{
		"no buffers":       {nil, nil, []int{512, 512, 1}},
		"small":            {[]SGE{{Length: 1}, {Length: 1 << 16}}, nil, []int{512, 512, 1}},
		"a large one":      {[]SGE{large, {Length: 1}}, nil, slices.Repeat([]int{1}, count)},
		"the last":         {[]SGE{{Length: 1}, large}, nil, slices.Repeat([]int{1}, count)},
		"all or none":      {[]SGE{large}, all(true), []int{count}},
		"more than a call": {[]SGE{large}, all(false), nil},
	} {
		for n, sge := range test.sges {
			put(i, sgesAt+Pointer(n)*16, sge)
		}
		sizes = nil
		result := post(i, 0, wrsAt, count, sgesAt, uint32(len(test.sges)), 0, test.whole, keep)
		want := int32(count)
		if test.want == nil {
			want = -int32(syscall.EMSGSIZE)
		}
		if result != want || !slices.Equal(sizes, test.want) {
			t.Errorf("%s: %d, batches of %v", name, result, sizes)
		}
	}
	put(i, sgesAt, large)
	ctx, cancel := context.WithCancel(t.Context())
	i.ctx, sizes = ctx, nil
	ended := func() (ended bool) {
		defer func() { ended = recover() != nil }()
		post(i, 0, wrsAt, count, sgesAt, 1, 0, nil,
			func(i *Instance, queue int, wrs []rdmacore.RecvWR, sges []rdmacore.SGE) (int, error) {
				cancel()
				return keep(i, queue, wrs, sges)
			})
		return false
	}()
	if !ended || !slices.Equal(sizes, []int{1}) {
		t.Errorf("the guest has ended: %t, after %v", ended, sizes)
	}
}
