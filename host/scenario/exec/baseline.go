package exec

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"rdmarun/host/record"
)

// tellBaseline tells the others what an earlier run has found, where thresholds may want it: who judges may not have
// it.
func (o *remote) tellBaseline(r *caseRun, begin *beginning) error {
	if r.config.Baseline == nil || len(r.testCase.Thresholds) == 0 {
		return nil
	}
	count := 0
	for part := range partsOf(r.config.Baseline) {
		if err := o.mailbox.Tell(baselineKey(o.mailbox.Name(), count), part); err != nil {
			return fmt.Errorf("tell the baseline: %w", err)
		}
		count++
	}
	begin.Baseline = &count
	return nil
}

// earlierPart is some of what an earlier run has found.
type earlierPart struct {
	Measures []record.Measure `json:"measures,omitempty"`
	Pairs    []record.Measure `json:"pairs,omitempty"`
}

const (
	// pairsAtOnce is how many pairs of meshes a message has.
	pairsAtOnce = 200
	// mostBaseline bounds the messages with what an earlier run has found.
	mostBaseline = 1 << 16
)

// partsOf is what an earlier run has found, in messages.
func partsOf(earlier *record.Earlier) iter.Seq[earlierPart] {
	return func(yield func(earlierPart) bool) {
		for i := range earlier.Measures {
			if !yield(earlierPart{Measures: []record.Measure{*earlier.Measures[i].WithoutHistograms()}}) {
				return
			}
		}
		for some := range slices.Chunk(slices.Collect(maps.Values(earlier.Pairs)), pairsAtOnce) {
			if !yield(earlierPart{Pairs: some}) {
				return
			}
		}
	}
}

// takeBaseline takes what a process has told of an earlier run, unless this one has that itself.
func (o *remote) takeBaseline(ctx context.Context, r *caseRun, name string, count *int) error {
	if count == nil || r.config.Baseline != nil {
		return nil
	}
	if *count < 0 || *count > mostBaseline {
		return fmt.Errorf("the baseline of %s: it has %d parts", name, *count)
	}
	earlier := &record.Earlier{}
	for i := range *count {
		var part earlierPart
		err := o.receive(ctx, name, baselineKey(name, i), &part)
		for _, m := range slices.Concat(part.Measures, part.Pairs) {
			if err == nil {
				err = m.Check()
			}
		}
		if err != nil {
			return fmt.Errorf("the baseline of %s: %w", name, err)
		}
		earlier.Measures = append(earlier.Measures, part.Measures...)
		for _, m := range part.Pairs {
			earlier.AddPair(m)
		}
	}
	r.config.Baseline = earlier
	return nil
}

func baselineKey(name string, i int) string { return fmt.Sprintf("baseline/%s/%d", name, i) }
