package html

import (
	"slices"
	"strings"

	"rdmarun/host/output/cases"
	"rdmarun/host/record"
)

// measureGroup is everything measured under one name in a case, and the same of the baseline. Sizes, roles and the
// steps of a connection are curves of one picture.
type measureGroup struct {
	name        string
	now, before []record.Measure
	// thresholds are those of the case.
	thresholds []record.Threshold
	// vary are the knobs and tags in which the measurements of the group differ: the names of their curves.
	vary map[string]bool
}

// maxGroups bounds the names for which a case shows pictures; the table has all of them, and the page explains it.
const maxGroups = 40

func groupsOf(c *cases.Case) (list []*measureGroup, without int) {
	byName, thresholds := make(map[string]*measureGroup), c.Thresholds.All()
	for _, m := range c.Measures {
		name := groupName(&m)
		g := byName[name]
		if g == nil {
			g = &measureGroup{name: name, thresholds: thresholds}
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
	for _, g := range list {
		g.vary = record.Varying(g.now)
	}
	shown := min(len(list), maxGroups)
	return list[:shown], len(list) - shown
}

// groupLimit is a threshold of a field of measurements of a group.
type groupLimit struct {
	text, field string
	value       float64
}

// limited are the thresholds of some fields of a metric, each value of a threshold once.
func (g *measureGroup) limited(metric string, fields ...string) (list []groupLimit) {
	for i := range g.thresholds {
		t := &g.thresholds[i]
		if t.Metric != metric || !slices.Contains(fields, t.Field) {
			continue
		}
		for _, each := range t.Bounds {
			known := slices.ContainsFunc(list, func(l groupLimit) bool {
				return l.field == t.Field && l.value == each.Value && l.text == t.Text
			})
			if each.Name == g.now[0].Name && !known {
				list = append(list, groupLimit{t.Text, t.Field, each.Value})
			}
		}
	}
	return list
}

func groupName(m *record.Measure) string {
	if m.Name == "" {
		return m.Type
	}
	return m.Name
}

// curve is the name of a curve within its group; of is what its times are of, if it has times.
func (g *measureGroup) curve(m *record.Measure, of string) string {
	var parts []string
	if m.Size > 0 {
		parts = append(parts, size(m.Size))
	}
	if of != "" && (of != "total" || m.Size == 0) {
		parts = append(parts, of)
	}
	parts = append(parts, m.Role)
	for _, each := range m.Knobs() {
		if g.vary[each.Name] {
			parts = append(parts, each.Value)
		}
	}
	return strings.Join(parts, " ")
}

// measureCharts are the pictures of the measurements of a case; without is for how many names there are none.
func measureCharts(c *cases.Case) (charts []chart, without int) {
	groups, without := groupsOf(c)
	for _, g := range groups {
		charts = append(append(charts, latencyCharts(g)...), intervalCharts(g)...)
	}
	return charts, without
}
