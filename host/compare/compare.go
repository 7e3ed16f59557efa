// Package compare compares two runs: which cases are new or gone, which ended differently, and what became faster or
// slower, if there are enough samples.
package compare

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"rdmarun/host/output/terminal"
	"rdmarun/host/record"
)

// Result is a comparison.
type Result struct {
	// Incomplete are the names of runs with records that end early: cases and metrics may be missing.
	Incomplete []string `json:"incomplete,omitempty"`
	Appeared   []string `json:"appeared"`
	Vanished   []string `json:"vanished"`
	Changed    []Change `json:"changed"`
	// Pairs are the pairs of meshes that became bad, or good.
	Pairs []PairChange `json:"pairs,omitempty"`
	Rows  []Row        `json:"rows"`
	// Different are facts that the runs do not share: of their surroundings, and the parameters of cases.
	Different []Fact `json:"different"`
}

// Change is a case that ended differently.
type Change struct {
	Case   string `json:"case"`
	Before string `json:"before"`
	After  string `json:"after"`
	// Worse means that it passed before and does not any more.
	Worse bool `json:"worse"`
}

// PairChange is a pair of a mesh of which something else became than before.
type PairChange struct {
	Case   string `json:"case"`
	Pair   string `json:"pair"`   // with the name of the measurement before it
	Before string `json:"before"` // good, outlier, lost
	After  string `json:"after"`
	// Worse means that it is bad and was not.
	Worse bool `json:"worse"`
	// Figures are the pair's own, then and now, with their unit, also of an incast, where its target is judged; of a
	// lost one 0.
	Figures [2]float64 `json:"figures"`
	Unit    string     `json:"unit"`
}

// Fact is something that two runs do not have in common.
type Fact struct {
	// Case is the case of the parameter; empty for a fact about the machine.
	Case   string `json:"case,omitempty"`
	Name   string `json:"name"`
	Before string `json:"before"`
	After  string `json:"after"`
	// Matters means that it may be why one run is faster than the other.
	Matters bool `json:"matters"`
}

// matterNot are facts that identify where a run took place, without an effect on speed.
var matterNot = []string{"version", "commit", "host", "node GUID", "network interface"}

func matters(name string) bool {
	return !slices.ContainsFunc(matterNot, func(end string) bool {
		return name == end || strings.HasSuffix(name, " "+end)
	})
}

// Row is a metric of a case.  If the case has passed at no attempt of a run, there are rows only for what both runs
// have measured: no duration.
type Row struct {
	Case   string  `json:"case"`
	Metric string  `json:"metric"`
	Unit   string  `json:"unit"`
	Before float64 `json:"before"` // medians; 0 for no sample
	After  float64 `json:"after"`
	// Samples are the sizes of the two samples.
	Samples [2]int `json:"samples"`
	// P is the probability that such samples differ by chance; 1 when there are too few samples.
	P float64 `json:"p"`
	// Result is better, worse, same, unknown (too few samples), or vanished or new: only one run has samples.
	Result string `json:"verdict"`
	// OfPair means that it is of a pair of a mesh.
	OfPair bool `json:"of_pair,omitempty"`
	// more means that more of it is better.
	more bool
}

// Change is the relative difference of the medians: 0.1 is a tenth more than before.
func (r *Row) Change() float64 {
	if r.Before == 0 {
		return 0
	}
	return r.After/r.Before - 1
}

// significance is how many of the differences that count may be chance: one in twenty.
const significance = 0.05

// Fewest is how many samples of each run there must be for a P below Significance to be possible at all.
const Fewest = 4

// Compare compares the run after with the run before.
func Compare(before, after *Run) *Result {
	result := &Result{}
	for _, run := range []*Run{before, after} {
		if !run.Complete {
			result.Incomplete = append(result.Incomplete, run.Name)
		}
	}
	for _, id := range before.order {
		a, b := before.cases[id], after.cases[id]
		if b == nil {
			result.Vanished = append(result.Vanished, id)
			continue
		}
		if was, is := a.endStatus(), b.endStatus(); was != is {
			worse := was == string(record.Passed) || is == string(record.Broken)
			worse = worse && is != string(record.Skipped)
			result.Changed = append(result.Changed, Change{id, was, is, worse})
		}
		result.Rows = append(result.Rows, rows(id, a, b)...)
		result.Pairs = append(result.Pairs, pairs(id, a, b)...)
		result.Different = append(result.Different, different(id, a.parameters, b.parameters)...)
	}
	for _, id := range after.order {
		if before.cases[id] == nil {
			result.Appeared = append(result.Appeared, id)
		}
	}
	decide(result.Rows)
	result.Different = append(different("", before.Environment, after.Environment), result.Different...)
	return result
}

// pairs are the pairs of meshes that became bad, or good.
func pairs(id string, before, after *samples) []PairChange {
	state := func(status string) string {
		if status == "suspect" { // it was well when it was measured again
			return "good"
		}
		return status
	}
	var list []PairChange
	for _, name := range slices.Sorted(maps.Keys(before.pairs)) {
		now, has := after.pairs[name]
		then := before.pairs[name]
		if was, is := state(then.status), state(now.status); has && was != is {
			list = append(list, PairChange{
				id, name, was, is, was == "good" || is == "lost", [2]float64{then.figure, now.figure}, then.unit,
			})
		}
	}
	return list
}

// byNameAndSize orders metrics by their names, those that differ in a size by that.
func byNameAndSize(a, b metric) int {
	stem := func(m metric) string { return strings.Replace(m.name, " "+terminal.Units{}.Bytes(m.size), "", 1) }
	return cmp.Or(strings.Compare(stem(a), stem(b)), cmp.Compare(a.size, b.size))
}

func rows(id string, before, after *samples) []Row {
	passed := before.hasPassed() && after.hasPassed() // otherwise it is a Change
	then, now := before.compared(), after.compared()
	all := maps.Clone(then)
	maps.Copy(all, now)
	metrics := slices.SortedFunc(maps.Keys(all), byNameAndSize)
	var list []Row
	for _, m := range metrics {
		a, b := then[m], now[m]
		row := Row{
			Case: id, Metric: m.name, Unit: m.unit, Before: median(a), After: median(b),
			Samples: [2]int{len(a), len(b)}, P: 1, Result: "unknown", OfPair: m.pair, more: m.more,
		}
		switch {
		case !passed && (len(a) == 0 || len(b) == 0):
			continue
		case len(b) == 0:
			row.Result = "vanished"
		case len(a) == 0:
			row.Result = "new"
		case len(a) >= Fewest && len(b) >= Fewest:
			row.P, row.Result = mannWhitney(a, b), "same"
		}
		list = append(list, row)
	}
	return list
}

// decide gives the rows with enough samples their verdicts. Of a hundred metrics that did not change, five have a P
// below 0.05. The procedure of Benjamini and Hochberg (1995) keeps the share of chance among the reported differences
// below Significance, for any number of metrics.
func decide(rows []Row) {
	var known []*Row
	for i := range rows {
		if rows[i].Result == "same" {
			known = append(known, &rows[i])
		}
	}
	slices.SortStableFunc(known, func(a, b *Row) int { return cmp.Compare(a.P, b.P) })
	count := 0
	for i, row := range known {
		if row.P <= significance*float64(i+1)/float64(len(known)) {
			count = i + 1
		}
	}
	for _, row := range known[:count] {
		if row.Before != row.After {
			row.Result = map[bool]string{true: "better", false: "worse"}[row.more == (row.After > row.Before)]
		}
	}
}

// different lists the facts of a case, or with an empty id of the surroundings, that are not the same.
func different(id string, before, after map[string]string) []Fact {
	names := make(map[string]bool)
	for name := range before {
		names[name] = true
	}
	for name := range after {
		names[name] = true
	}
	var facts []Fact
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if before[name] != after[name] {
			facts = append(facts, Fact{id, name, before[name], after[name], id != "" || matters(name)})
		}
	}
	return facts
}

// Worse reports whether anything became worse.
func (r *Result) Worse() bool {
	return slices.ContainsFunc(r.Changed, func(c Change) bool { return c.Worse }) ||
		slices.ContainsFunc(r.Pairs, func(c PairChange) bool { return c.Worse }) ||
		slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Result == "worse" })
}

// Comparable reports whether both runs are complete and have the same cases, with the same metrics and parameters.
func (r *Result) Comparable() bool {
	return len(r.Incomplete) == 0 && len(r.Vanished) == 0 && len(r.Appeared) == 0 &&
		!slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Result == "vanished" || row.Result == "new" }) &&
		!slices.ContainsFunc(r.Different, func(fact Fact) bool { return fact.Case != "" })
}
