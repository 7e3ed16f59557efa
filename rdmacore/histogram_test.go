package rdmacore

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// TestHistogramAgreement records the same values natively and in HdrHistogram's own library.
func TestHistogramAgreement(t *testing.T) {
	for _, geometry := range []struct {
		highest time.Duration
		digits  int
	}{{time.Minute, 3}, {10 * time.Second, 3}, {time.Hour, 1}, {time.Second, 5}, {2047, 3}, {2048, 3}, {1 << 62, 2}} {
		random := rand.New(rand.NewPCG(1, uint64(geometry.digits)))
		values := []time.Duration{0, 1, 2, 2047, 2048, 2049, geometry.highest}
		for shift := range 62 {
			for range 20 {
				values = append(values, time.Duration(random.Int64N(1<<shift)))
			}
		}
		inRange := values[:0]
		other := hdrhistogram.New(1, int64(geometry.highest), geometry.digits)
		for _, value := range values {
			if value > geometry.highest {
				continue
			}
			inRange = append(inRange, value)
			must(t, other.RecordValue(int64(value)))
		}
		h, err := histogramOf(geometry.highest, geometry.digits, inRange)
		must(t, err)
		if !h.hdr.Equals(other) {
			t.Errorf("%v: the counts differ", geometry)
		}
		must(t, h.Snapshot().Validate())
		if h.Count() != int64(len(inRange)) {
			t.Errorf("%v: %d values; recorded %d", geometry, h.Count(), len(inRange))
		}
		for _, percentile := range []float64{0, 10, 50, 90, 99, 99.9, 100} {
			want := max(h.Min(), min(time.Duration(other.ValueAtPercentile(percentile)), h.Max()))
			if percentile == 100 {
				want = geometry.highest
			}
			if got := h.Percentile(percentile); got != want {
				t.Errorf("%v: percentile %g is %d, want %d", geometry, percentile, got, want)
			}
		}
	}
	for _, wrong := range []struct {
		highest time.Duration
		digits  int
	}{{1, 3}, {time.Minute, 0}, {time.Minute, 6}, {1<<62 + 1, 3}} {
		_, err := histogramOf(wrong.highest, wrong.digits, nil)
		refused(t, err, syscall.EINVAL)
	}
}

func TestHistogram(t *testing.T) {
	h, err := histogramOf(time.Second, 3, []time.Duration{1001, 3003, 2002, 5 * time.Second})
	must(t, err)
	if h.Min() != 1001 || h.Max() != 5*time.Second || h.Count() != 4 {
		t.Errorf("min %d, max %d, count %d", h.Min(), h.Max(), h.Count())
	}
	if median := h.Percentile(50); median < 2002 || median > 2004 {
		t.Errorf("median %d", median)
	}
	if mean := h.Mean(); mean < 249*time.Millisecond || mean > 251*time.Millisecond {
		t.Errorf("mean %s", mean)
	}
	other, err := histogramOf(time.Minute, 2, []time.Duration{7, time.Minute})
	must(t, err)
	h.Merge(other)
	h.Merge(nil)
	if h.Min() != 7 || h.Max() != time.Minute {
		t.Errorf("merged: min %d, max %s", h.Min(), h.Max())
	}
	var none *Histogram
	if none.Count() != 0 || none.Percentile(50) != 0 || none.Mean() != 0 ||
		none.Min() != 0 || none.Max() != 0 || none.StdDev() != 0 || none.Snapshot() != nil {
		t.Error("a nil histogram is not empty")
	}
}
