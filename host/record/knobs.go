package record

import (
	"fmt"
	"maps"
	"slices"
)

// Knobs are what a measurement was made with beside its size and role, in words, the tags last: what may tell it from
// others of its name.
func (m *Measure) Knobs() []Fact {
	var list []Fact
	add := func(name, value string, worth bool) {
		if worth {
			list = append(list, Fact{name, value})
		}
	}
	add("operation", m.Operation, m.Operation != "")
	add("both", "both ways", m.Both)
	add("depth", fmt.Sprintf("depth %d", m.Depth), m.Depth > 0)
	add("qps", fmt.Sprintf("%d queue pairs", m.QPs), m.QPs > 1)
	for _, tag := range slices.Sorted(maps.Keys(m.Tags)) {
		text := tag
		if value := m.Tags[tag]; value != "" {
			text += "=" + value
		}
		add("tag "+tag, text, tag != "depth" || m.Depth == 0 || m.Tags[tag] != fmt.Sprint(m.Depth)) // once is enough
	}
	return list
}

// Varying names the knobs that are not the same for all.
func Varying(measures []Measure) map[string]bool {
	values, count := make(map[string]string), make(map[string]int)
	vary := make(map[string]bool)
	for i := range measures {
		for _, each := range measures[i].Knobs() {
			if first, known := values[each.Name]; known && first != each.Value {
				vary[each.Name] = true
			}
			values[each.Name] = each.Value
			count[each.Name]++
		}
	}
	for name, n := range count {
		vary[name] = vary[name] || n < len(measures)
	}
	return vary
}
