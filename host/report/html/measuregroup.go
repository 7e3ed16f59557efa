package html

import (
	"rdmarun/host/report/cases"
	"rdmarun/host/scenario/record"
)

// measureGroup is what was measured under one name in a case, and what the baseline has of it: sizes, roles and the steps of
// a connection are curves of one picture.
type measureGroup struct {
	name        string
	now, before []record.Measure
}

// mostGroups is of how many names a case shows pictures; the table has all.
const mostGroups = 12

func groupsOf(c *cases.Case) []*measureGroup {
	var list []*measureGroup
	byName := make(map[string]*measureGroup)
	for _, m := range c.Measures.All() {
		name := groupName(&m)
		g := byName[name]
		if g == nil {
			g = &measureGroup{name: name}
			byName[name] = g
			list = append(list, g)
		}
		g.now = append(g.now, m)
	}
	for _, m := range c.Before {
		if g := byName[groupName(&m)]; g != nil {
			g.before = append(g.before, m)
		}
	}
	return list[:min(len(list), mostGroups)]
}

func groupName(m *record.Measure) string {
	if m.Name == "" {
		return m.Type
	}
	return m.Name
}

// measureCharts are the pictures of what a case has measured.
func measureCharts(c *cases.Case) ([]chart, error) {
	var charts []chart
	for _, g := range groupsOf(c) {
		for _, draw := range []func(*measureGroup) ([]chart, error){latencyCharts, intervalCharts} {
			drawn, err := draw(g)
			if err != nil {
				return nil, err
			}
			charts = append(charts, drawn...)
		}
	}
	return charts, nil
}
