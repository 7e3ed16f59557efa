package rdmacore

import (
	"context"
	"time"
)

// runMeasurement prepares a measurement, runs it and closes it.
func runMeasurement(ctx context.Context, spec MeasureSpec, ends ...MeasureEnd) (*MeasureResult, error) {
	if ctx.Err() != nil {
		return nil, cancelled(ctx, measureOp, "the end of the measurement")
	}
	m, err := NewMeasurement(spec, ends...)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	return m.Run(ctx)
}

func perSecond(amount float64, elapsed time.Duration) float64 {
	if elapsed <= 0 {
		return 0
	}
	return amount / elapsed.Seconds()
}

// Messages is the sum of the messages of both directions, or the round trips, or the connections.
func (r *MeasureResult) Messages() uint64 {
	var sum uint64
	for _, end := range r.counted() {
		sum += end.Messages
	}
	return sum
}

// Elapsed is the timed part, the longer of two.
func (r *MeasureResult) Elapsed() time.Duration {
	var longest time.Duration
	for _, end := range r.counted() {
		longest = max(longest, end.Elapsed)
	}
	return longest
}

// BandwidthBitsPerSecond is the rate of payload, of both directions together when there are two.  It is 0 for
// connections.
func (r *MeasureResult) BandwidthBitsPerSecond() float64 {
	var sum float64
	for _, end := range r.counted() {
		sum += perSecond(float64(end.Bytes)*8, end.Elapsed)
	}
	return sum
}

// MessagesPerSecond is the rate of messages of both directions together, of round trips or of connections.
func (r *MeasureResult) MessagesPerSecond() float64 {
	var sum float64
	for _, end := range r.counted() {
		sum += perSecond(float64(end.Messages), end.Elapsed)
	}
	return sum
}

// Histogram is that of the whole: the latency, or the whole of a connection; nil for bandwidth.
func (r *MeasureResult) Histogram() *Histogram { return r.Histograms[StepTotal] }

// Intervals are those of the active end, or of the passive one when it alone is here.
func (r *MeasureResult) Intervals() []Interval {
	for _, end := range r.Ends {
		if end.Role == MeasureActive || len(r.Ends) == 1 {
			return end.Intervals
		}
	}
	return nil
}

// counted are the ends that transmit; the active one first.
func (r *MeasureResult) counted() []MeasureEndResult {
	var ends []MeasureEndResult
	for _, end := range r.Ends {
		if end.Role == MeasureActive || r.Spec.Bidirectional {
			ends = append(ends, end)
		}
	}
	return ends
}
