package record

import (
	"cmp"
	"slices"
)

// BySize is a copy of measurements in which the sizes of each sweep ascend.  Each measurement and each round of a loop
// keeps its place among the others.
func BySize(measures []Measure) []Measure {
	type sweep struct {
		key                 MeasureKey
		file                string
		line, column, round int
	}
	places, rounds := make(map[sweep][]int), make(map[MeasureKey]int)
	for i := range measures {
		m := &measures[i]
		if m.Printed != nil {
			continue // the values of a line belong together
		}
		key := m.Key()
		one := sweep{key: key, file: m.File, line: m.Line, column: m.Column, round: rounds[key]}
		rounds[key]++
		one.key.Size = 0
		places[one] = append(places[one], i)
	}
	sorted := slices.Clone(measures)
	for _, at := range places {
		order := slices.Clone(at)
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(measures[a].Size, measures[b].Size) })
		for i, from := range order {
			sorted[at[i]] = measures[from]
		}
	}
	return sorted
}
