package trace

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"rdmarun/host/record"
)

// TestHistogram: a percentile is that of the durations themselves, by the same rule, up to the end of its bucket.
func TestHistogram(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, count := range []int{1, 2, 3, 10, 50, 149, 150, 151, 1000} {
		var h histogram
		durations := make([]time.Duration, count)
		for i := range durations {
			durations[i] = time.Duration(random.Uint64N(1 << random.UintN(40)))
			h.add(durations[i])
		}
		slices.Sort(durations)
		for _, percentile := range []float64{1, 50, 99, 99.9, 100} {
			want := durations[record.PercentileRank(percentile, count)-1]
			if got := h.percentile(percentile); got < want || got > want+want/8 {
				t.Errorf("percentile %g of %d durations is %d, not %d", percentile, count, got, want)
			}
		}
	}
	if got := new(histogram).percentile(99); got != 0 {
		t.Errorf("percentile of none is %s", got)
	}
	h := histogram{}
	h.add(-time.Second)
	h.add(1<<63 - 1)
	if low, high := h.percentile(50), h.percentile(100); low != 0 || high != 1<<63-1 {
		t.Errorf("percentiles of the least and the largest duration are %d and %d", low, high)
	}
}
