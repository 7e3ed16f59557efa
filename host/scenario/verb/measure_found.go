package verb

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"rdmarun/host/record"
	"rdmarun/rdmacore"
)

// records are the figures of each end that transmits, makes round trips or connects.  results has one entry for each
// queue pair, nil for one that never began; there are the figures of an end that is not here.
func (m *measuring) records(results []*rdmacore.MeasureResult, there *figures) []*record.Measure {
	active := m.record(results, m.figures(rdmacore.MeasureActive, results))
	active.Latency = m.distributions(results)
	if !m.args.Bidirectional {
		return []*record.Measure{active} // the other end only answers
	}
	if there == nil {
		there = m.figures(rdmacore.MeasurePassive, results)
	}
	passive := m.record(results, there)
	passive.Role, passive.Peer = passive.Peer, passive.Role
	return []*record.Measure{active, passive}
}

// record is what was measured, with the figures of one end.
func (m *measuring) record(results []*rdmacore.MeasureResult, f *figures) *record.Measure {
	kind := m.args.Kind.Value
	found := &record.Measure{
		What: record.What{Type: kind.String()}, Role: string(m.args.From), Peer: string(m.args.To),
		How:      record.How{Both: m.args.Bidirectional},
		Messages: f.Messages, Bytes: f.Bytes, Errors: f.Errors, Took: f.Took, Intervals: f.Intervals,
	}
	found.Tags = m.part.tags()
	if m.args.Operation.Given {
		found.Operation = m.args.Operation.Value.String()
	}
	if len(results) > 1 {
		found.QPs = len(results)
	}
	for _, result := range results {
		if result != nil {
			found.Size, found.Depth = int64(result.Spec.Size), result.Spec.Depth
		}
	}
	if seconds := found.Took.Seconds(); seconds > 0 {
		if kind == rdmacore.MeasureBandwidth {
			found.BitsPerSecond = float64(found.Bytes) * 8 / seconds
		}
		found.MessagesPerSecond = float64(found.Messages) / seconds
	}
	return found
}

// figures are what one end of all queue pairs has done.
type figures struct {
	Messages  uint64            `json:"messages"`
	Bytes     uint64            `json:"bytes"`
	Errors    uint64            `json:"errors,omitempty"`
	Verified  uint64            `json:"verified,omitempty"`
	Took      time.Duration     `json:"took_ns"`
	Intervals []record.Interval `json:"intervals,omitempty"`
}

// figures sums up one end of all queue pairs.
func (m *measuring) figures(role rdmacore.MeasureRole, results []*rdmacore.MeasureResult) *figures {
	found := &figures{}
	var window timeSpan
	var ends []*rdmacore.MeasureEndResult
	for _, result := range results {
		if result == nil {
			continue
		}
		for j := range result.Ends {
			end := &result.Ends[j]
			if end.Role != role {
				continue
			}
			window.add(end.Begin, end.Begin+end.Elapsed)
			found.Messages += end.Messages
			found.Bytes += end.Bytes
			found.Errors += end.Failed
			found.Verified += end.Verified
			ends = append(ends, end)
		}
	}
	found.Took, found.Intervals = window.length(), mergeIntervals(ends, m.part.spec.SampleEvery, window)
	return found
}

// timeSpan is how long several measurements at once took, from the first begin to the last end. So the rate includes
// the time in which only some of them ran.
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

// mergeIntervals adds up the intervals of all queue pairs. Each queue pair began a little later than the first, so the
// sum has a grid of its own, from the first begin. The work of an interval is spread evenly over it.
func mergeIntervals(ends []*rdmacore.MeasureEndResult, grid time.Duration, window timeSpan) []record.Interval {
	var all []record.Interval
	for _, end := range ends {
		for _, each := range end.Intervals {
			if len(ends) > 1 {
				each.Begin, each.End = each.Begin+end.Begin-window.begin, each.End+end.Begin-window.begin
			}
			all = append(all, record.Interval(each))
		}
		if len(end.Intervals) > 1 {
			// There were too many: the core has joined pairs of them.
			for first := end.Intervals[0]; 2*grid <= first.End-first.Begin; grid *= 2 {
			}
		}
	}
	if len(ends) == 1 || all == nil || grid <= 0 {
		return all
	}
	var merged []record.Interval
	var before, until record.Interval
	for edge := min(grid, window.length()); ; edge = min(edge+grid, window.length()) {
		until = sumUntil(all, edge)
		merged = append(merged, record.Interval{
			Begin: before.End, End: edge, Messages: until.Messages - before.Messages, Bytes: until.Bytes - before.Bytes,
		})
		if before = until; edge >= window.length() {
			return merged
		}
	}
}

// sumUntil is what was done before a time.
func sumUntil(all []record.Interval, edge time.Duration) record.Interval {
	sum := record.Interval{End: edge}
	for i := range all {
		each := &all[i]
		part := 1.0
		if edge < each.End && each.End > each.Begin {
			part = max(float64(edge-each.Begin)/float64(each.End-each.Begin), 0)
		}
		sum.Messages += uint64(part * float64(each.Messages))
		sum.Bytes += uint64(part * float64(each.Bytes))
	}
	return sum
}

// distributions merges the histograms of all queue pairs.
func (m *measuring) distributions(results []*rdmacore.MeasureResult) []record.Distribution {
	keep := m.args.Histogram.Keep.or(true)
	var list []record.Distribution
	for step := rdmacore.StepTotal; step <= rdmacore.StepDestroy; step++ {
		var sum *rdmacore.Histogram
		var took time.Duration
		for _, result := range results {
			switch {
			case result == nil || result.Histograms[step].Count() == 0:
			case sum == nil:
				sum, took = result.Histograms[step], result.StepTook[step] // connections are one measurement
			default:
				sum.Merge(result.Histograms[step])
			}
		}
		if sum != nil {
			each := distribution(step.String(), sum, keep)
			each.Took = took
			list = append(list, each)
		}
	}
	return list
}

func distribution(of string, h *rdmacore.Histogram, keep bool) record.Distribution {
	d := record.Distribution{
		Of: of, Count: h.Count(), Min: int64(h.Min()), Max: int64(h.Max()), Mean: float64(h.Mean()),
		StdDev: float64(h.StdDev()),
		P50:    int64(h.Percentile(50)), P90: int64(h.Percentile(90)), P99: int64(h.Percentile(99)),
		P999: int64(h.Percentile(99.9)), P9999: int64(h.Percentile(99.99)),
	}
	if keep {
		// It writes its own data to memory, and so does not fail.
		if text, err := hdrhistogram.Import(h.Snapshot()).Encode(
			hdrhistogram.V2CompressedEncodingCookieBase,
		); err == nil {
			d.HDR = string(text)
		}
	}
	return d
}
