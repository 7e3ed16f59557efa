package peer

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"rdmarun/host/record"
)

// SendEarlier sends the results of an earlier run to the others, and returns the number of its messages.
func (g *Group) SendEarlier(earlier *record.Earlier) (count int, err error) {
	for part := range partsOf(earlier) {
		if err := g.Mailbox.Broadcast(baselineKey(g.Mailbox.Name(), count), part); err != nil {
			return 0, fmt.Errorf("send the baseline: %w", err)
		}
		count++
	}
	return count, nil
}

// earlierPart is a message with some results of an earlier run.
type earlierPart struct {
	Measures []record.Measure `json:"measures,omitempty"`
	Pairs    []record.Measure `json:"pairs,omitempty"`
}

const (
	// pairsAtOnce is how many pairs of meshes a message has.
	pairsAtOnce = 200
	// maxBaseline bounds the messages of one earlier run.
	maxBaseline = 1 << 16
)

// partsOf are the messages with the results of an earlier run.
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

// ReceiveEarlier receives the results of an earlier run from a process, in count messages.
func (g *Group) ReceiveEarlier(ctx context.Context, name string, count int) (*record.Earlier, error) {
	if count < 0 || count > maxBaseline {
		return nil, fmt.Errorf("the baseline of %s: it has %d parts", name, count)
	}
	earlier := &record.Earlier{}
	for i := range count {
		var part earlierPart
		err := g.Receive(ctx, name, baselineKey(name, i), &part)
		for _, m := range slices.Concat(part.Measures, part.Pairs) {
			if err == nil {
				err = m.Check()
			}
		}
		if err != nil {
			return nil, fmt.Errorf("the baseline of %s: %w", name, err)
		}
		earlier.Measures = append(earlier.Measures, part.Measures...)
		for _, m := range part.Pairs {
			earlier.AddPair(m)
		}
	}
	return earlier, nil
}

func baselineKey(name string, i int) string { return fmt.Sprintf("baseline/%s/%d", name, i) }
