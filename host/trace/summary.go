package trace

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"slices"
	"text/tabwriter"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/quantity"
	"rdmarun/rdmacore"
)

// Summary counts calls.
type Summary struct {
	calls     map[string]*tally
	failures  map[string]uint64 // of completions and events
	missing   []string
	polls     uint64 // with completions
	empty     uint64
	completed uint64
}

// NewSummary returns an empty one.
func NewSummary() *Summary {
	return &Summary{calls: map[string]*tally{}, failures: map[string]uint64{}}
}

// tally is what is counted of one function.
type tally struct {
	name            string
	count, errors   uint64
	messages, bytes uint64
	total           time.Duration
	histogram       histogram
}

// Take counts a call.
func (s *Summary) Take(call *Call) {
	if call.Note != "" {
		s.missing = append(s.missing, call.Note)
		return
	}
	t := s.calls[call.Name]
	if t == nil {
		t = &tally{name: call.Name}
		s.calls[call.Name] = t
	}
	if call.Group == "poll" {
		s.empty += call.Polls
		if isEmptyPoll(call) {
			t.count += call.Polls
			return
		}
		t.count += call.Polls
		s.polls++
		s.completed += call.Messages
	}
	t.count++
	if call.Failed() {
		t.errors++
	}
	t.messages += call.Messages
	t.bytes += call.Bytes
	t.total += call.Duration()
	t.histogram.add(call.Duration())
	for _, failure := range failuresOf(call) {
		s.failures[failure]++
	}
}

// failuresOf are the statuses of failed completions and events.
func failuresOf(call *Call) (names []string) {
	if call.Failures == 0 {
		return nil
	}
	var walk func(fields []Field)
	walk = func(fields []Field) {
		for _, field := range fields {
			switch v := field.Value.(type) {
			case explained:
				if field.Name == "status" {
					names = append(names, v.Name)
				}
			case Struct:
				walk(v)
			case List:
				for _, each := range v {
					if fields, is := each.(Struct); is {
						walk(fields)
					}
				}
			}
		}
	}
	walk(call.Results)
	for i := range call.Polled {
		if status := call.Polled[i].Status; status != rdmacore.WCSuccess {
			names = append(names, status.String())
		}
	}
	return names
}

// Write writes the table: the functions that took most time first.
func (s *Summary) Write(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "calls\terrors\ttotal\tmean\tp99\tmessages\tbytes\t  call\n")
	rows := slices.SortedFunc(maps.Values(s.calls), func(a, b *tally) int {
		return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(a.name, b.name))
	})
	for _, t := range rows {
		mean := time.Duration(0)
		if timed := t.histogram.count; timed > 0 {
			mean = t.total / time.Duration(timed)
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t  %s\n", t.count, orNothing(t.errors), orZero(t.total),
			orZero(mean), orZero(t.histogram.percentile(99)), orNothing(t.messages), size(t.bytes), t.name)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if s.polls+s.empty > 0 {
		fmt.Fprintf(out, "\npolls: %d with completions (%.1f each), %d empty, %.1f %% hits\n", s.polls,
			float64(s.completed)/float64(max(1, s.polls)), s.empty, 100*float64(s.polls)/float64(s.polls+s.empty))
	}
	for _, name := range slices.Sorted(maps.Keys(s.failures)) {
		fmt.Fprintf(out, "status %s: %d times\n", name, s.failures[name])
	}
	for _, note := range s.missing {
		fmt.Fprintf(out, "%s\n", note)
	}
	return nil
}

func orNothing(count uint64) string {
	if count == 0 {
		return ""
	}
	return fmt.Sprint(count)
}

func orZero(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return brief(d)
}

func size(bytes uint64) string {
	if bytes == 0 {
		return ""
	}
	return quantity.Size(int64(min(bytes, 1<<62)))
}

// histogram counts durations in buckets of an eighth of a power of two.
type histogram struct {
	count   uint64
	buckets [8 * 64]uint64
}

func (h *histogram) add(d time.Duration) {
	h.count++
	h.buckets[bucketOf(uint64(max(0, d)))]++
}

func bucketOf(value uint64) int {
	if value < 8 {
		return int(value)
	}
	exponent := bits.Len64(value) - 4
	return 8*(exponent+1) + int(value>>exponent)&7
}

// percentile is the upper end of the bucket with a percentile of all durations; 0 if there are none.
func (h *histogram) percentile(percentile float64) time.Duration {
	rank, seen := uint64(record.PercentileRank(percentile, int(h.count))), uint64(0)
	for i, count := range h.buckets {
		if seen += count; count > 0 && seen >= rank {
			if i < 8 {
				return time.Duration(i)
			}
			return time.Duration((uint64(8+i%8)+1)<<(i/8-1) - 1)
		}
	}
	return 0
}
