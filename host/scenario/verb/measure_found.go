package verb

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"rdmarun/host/scenario/record"
	"rdmarun/rdmacore"
)

// records are the figures of each end that has any: who transmits, makes round trips or connects.  results are
// of all queue pairs, nil for one that never began.
func (m *measuring) records(results []*rdmacore.MeasureResult) []*record.Measure {
	var list []*record.Measure
	for _, role := range []rdmacore.MeasureRole{rdmacore.MeasureActive, rdmacore.MeasurePassive} {
		found := &record.Measure{
			Type: m.call.Text("kind"), Operation: m.call.Text("op"),
			Role: m.from.Name, Peer: m.to.Name, Both: m.call.Boolean("bidirectional"),
		}
		if role == rdmacore.MeasurePassive {
			if !found.Both {
				break // it only answers
			}
			found.Role, found.Peer = found.Peer, found.Role
		}
		var window timeSpan
		var ends []*rdmacore.MeasureEndResult
		for _, result := range results {
			if result == nil {
				continue
			}
			found.Size, found.Depth = int64(result.Spec.Size), result.Spec.Depth
			for j := range result.Ends {
				if end := &result.Ends[j]; end.Role == role {
					window.add(end.Begin, end.Begin+end.Elapsed)
					addEnd(found, end)
					ends = append(ends, end)
				}
			}
		}
		if len(results) > 1 {
			found.QPs = len(results)
		}
		found.Took, found.Intervals = window.length(), mergeIntervals(ends)
		if seconds := found.Took.Seconds(); seconds > 0 {
			found.BitsPerSecond = float64(found.Bytes) * 8 / seconds
			found.MessagesPerSecond = float64(found.Messages) / seconds
		}
		if role == rdmacore.MeasureActive {
			found.Latency = m.distributions(results)
		}
		list = append(list, found)
	}
	return list
}

// timeSpan is the time that several measurements at once took, from the first begin to the last end: no rate is
// made of times in which some of them had stopped.
type timeSpan struct{ begin, end time.Duration }

func (s *timeSpan) add(begin, end time.Duration) {
	if end <= begin {
		return
	}
	if s.end == 0 || begin < s.begin {
		s.begin = begin
	}
	s.end = max(s.end, end)
}

func (s *timeSpan) length() time.Duration { return s.end - s.begin }

// addEnd adds what one queue pair did.
func addEnd(found *record.Measure, end *rdmacore.MeasureEndResult) {
	found.Messages += end.Messages
	found.Bytes += end.Bytes
	found.Errors += end.Failed
}

// mergeIntervals adds the intervals of all queue pairs.  They count on the same grid, each from its own begin, and
// begin together but for microseconds: an interval of all begins and ends at the mean of their times.
func mergeIntervals(ends []*rdmacore.MeasureEndResult) []record.Interval {
	var merged []record.Interval
	for i := 0; ; i++ {
		var sum record.Interval
		count := time.Duration(0)
		for _, end := range ends {
			if i < len(end.Intervals) {
				each := &end.Intervals[i]
				sum.Begin, sum.End = sum.Begin+each.Begin, sum.End+each.End
				sum.Messages, sum.Bytes = sum.Messages+each.Messages, sum.Bytes+each.Bytes
				count++
			}
		}
		if count == 0 {
			return merged
		}
		sum.Begin, sum.End = sum.Begin/count, sum.End/count
		merged = append(merged, sum)
	}
}

// distributions are the times of all queue pairs together.
func (m *measuring) distributions(results []*rdmacore.MeasureResult) []record.Distribution {
	keep := true
	if given, isGiven := m.call.options("histogram")["keep"].(bool); isGiven {
		keep = given
	}
	var list []record.Distribution
	for step := rdmacore.StepTotal; step <= rdmacore.StepDestroy; step++ {
		var sum *rdmacore.Histogram
		for _, result := range results {
			switch {
			case result == nil || result.Histograms[step].Count() == 0:
			case sum == nil:
				sum = result.Histograms[step]
			default:
				sum.Merge(result.Histograms[step])
			}
		}
		if sum != nil {
			list = append(list, distribution(step.String(), sum, keep))
		}
	}
	return list
}

func distribution(of string, h *rdmacore.Histogram, keep bool) record.Distribution {
	d := record.Distribution{
		Of: of, Count: h.Count(), Min: int64(h.Min()), Max: int64(h.Max()), Mean: float64(h.Mean()), StdDev: float64(h.StdDev()),
		P50: int64(h.Percentile(50)), P90: int64(h.Percentile(90)), P99: int64(h.Percentile(99)),
		P999: int64(h.Percentile(99.9)), P9999: int64(h.Percentile(99.99)),
	}
	if keep {
		// What it writes to is memory, and what it writes it has made itself.
		if text, err := hdrhistogram.Import(h.Snapshot()).Encode(hdrhistogram.V2CompressedEncodingCookieBase); err == nil {
			d.HDR = string(text)
		}
	}
	return d
}
