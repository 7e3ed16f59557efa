package rdmacore

// #include "measure/histogram.h"
import "C"

import (
	"time"
	"unsafe"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Histogram is the distribution of durations, to three significant digits unless the spec sets others,
// as HdrHistogram keeps it.  Minimum and maximum are exact.  A nil *Histogram is empty.
type Histogram struct {
	hdr              *hdrhistogram.Histogram
	minimum, maximum time.Duration
}

// fromCHistogram copies the counts.
func fromCHistogram(c *C.struct_core_histogram) *Histogram {
	if c == nil {
		return nil
	}
	counts := unsafe.Slice((*int64)(c.counts), uint64(c.length))
	h := &Histogram{
		hdr: hdrhistogram.Import(&hdrhistogram.Snapshot{
			LowestTrackableValue:  1,
			HighestTrackableValue: int64(c.highest),
			SignificantFigures:    int64(c.digits),
			Counts:                counts,
		}),
	}
	if c.recorded != 0 {
		h.minimum, h.maximum = time.Duration(c.minimum), time.Duration(c.maximum)
	}
	return h
}

// Count is the number of values.
func (h *Histogram) Count() int64 {
	if h == nil {
		return 0
	}
	return h.hdr.TotalCount()
}

// Min is the least value, 0 when there is none.
func (h *Histogram) Min() time.Duration {
	if h == nil {
		return 0
	}
	return h.minimum
}

// Max is the greatest value, 0 when there is none.
func (h *Histogram) Max() time.Duration {
	if h == nil {
		return 0
	}
	return h.maximum
}

// Mean is the arithmetic mean, 0 when there is no value.
func (h *Histogram) Mean() time.Duration {
	if h.Count() == 0 {
		return 0
	}
	return time.Duration(h.hdr.Mean())
}

// StdDev is the standard deviation, 0 when there is no value.
func (h *Histogram) StdDev() time.Duration {
	if h.Count() == 0 {
		return 0
	}
	return time.Duration(h.hdr.StdDev())
}

// Percentile is the value that percentile percent of all values do not exceed; 50 is the median.  It is 0
// when there is no value.
func (h *Histogram) Percentile(percentile float64) time.Duration {
	if h.Count() == 0 {
		return 0
	}
	return h.within(percentile, h.hdr.ValueAtPercentile(percentile))
}

// within corrects a value at the ends: a bucket reaches beyond what was seen, and clamped values are in one
// that they are above.
func (h *Histogram) within(percentile float64, value int64) time.Duration {
	if percentile >= 100 {
		return h.maximum
	}
	return max(h.minimum, min(time.Duration(value), h.maximum))
}

// Merge adds the values of other.  The geometries may differ.
func (h *Histogram) Merge(other *Histogram) {
	if other.Count() == 0 {
		return
	}
	h.minimum, h.maximum = h.merged(other)
	h.hdr.Merge(other.hdr)
}

func (h *Histogram) merged(other *Histogram) (minimum, maximum time.Duration) {
	if h.Count() == 0 {
		return other.minimum, other.maximum
	}
	return min(h.minimum, other.minimum), max(h.maximum, other.maximum)
}

// Snapshot is the counts in the form that HdrHistogram's libraries exchange.
func (h *Histogram) Snapshot() *hdrhistogram.Snapshot {
	if h == nil {
		return nil
	}
	return h.hdr.Export()
}

// histogramOf has the native core count values, as measurements do.
func histogramOf(highest time.Duration, digits int, values []time.Duration) (*Histogram, error) {
	var c C.struct_core_histogram
	result := C.core_histogram_init(&c, C.uint64_t(highest), C.uint32_t(digits))
	if err := check("make histogram", int(result)); err != nil {
		return nil, err
	}
	defer C.core_histogram_free(&c)
	for _, value := range values {
		C.core_histogram_record(&c, C.uint64_t(value))
	}
	return fromCHistogram(&c), nil
}
