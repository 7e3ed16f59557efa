package terminal

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"rdmarun/host/record"
)

// measureTable is a table of measurements of one type: a line of headings, then a line each.
type measureTable struct {
	kind string
	rows [][]string
}

// measureTables puts the measurements of a case into tables like those of perftest.
func measureTables(found []record.Measure, units Units) []measureTable {
	var tables []measureTable
	names := measureNames(found)
	for i := 0; i < len(found); i++ {
		m := &found[i]
		if m.Printed != nil {
			headings, row, end := printedRow(found[i:], units)
			if last := len(tables) - 1; last < 0 || !slices.Equal(tables[last].rows[0], headings) {
				tables = append(tables, measureTable{m.Type, [][]string{headings}})
			}
			table := &tables[len(tables)-1]
			table.rows = append(table.rows, row)
			i += end - 1
			continue
		}
		if len(tables) == 0 || tables[len(tables)-1].kind != m.Type {
			tables = append(tables, measureTable{m.Type, [][]string{measureHeadings(m.Type)}})
		}
		table := &tables[len(tables)-1]
		table.rows = append(table.rows, append([]string{names[i]}, measureRow(m, units)...))
		table.rows = append(table.rows, stepRows(m, units)...)
	}
	for i := range tables {
		tables[i].dropUnknown()
	}
	return tables
}

// unknown is a value that a measurement does not have.
const unknown = "-"

// dropUnknown removes the columns that are unknown in all rows.
func (t *measureTable) dropUnknown() {
	for column := len(t.rows[0]) - 1; column > 0; column-- {
		known := func(row []string) bool { return column < len(row) && row[column] != unknown }
		if slices.ContainsFunc(t.rows[1:], known) {
			continue
		}
		for i, row := range t.rows {
			if column < len(row) {
				t.rows[i] = slices.Delete(row, column, column+1)
			}
		}
	}
}

func measureHeadings(kind string) []string {
	switch kind {
	case record.BandwidthType:
		return []string{kind, "size", "messages", "average", "least", "most", "messages/s"}
	case record.ConnectType:
		return []string{kind, "count", "errors", "rate", "p50", "p99", "p99.9", "max"}
	}
	return []string{kind, "size", "iterations", "min", "p50", "p99", "p99.9", "max"}
}

// printedRow are the values that a program has printed in one line, and their number. They are those of one role and
// size, each name once.
func printedRow(found []record.Measure, units Units) (headings, row []string, count int) {
	first := &found[0]
	headings, row = []string{first.Type}, []string{first.Role}
	if first.Size > 0 {
		headings, row = append(headings, "size"), append(row, units.Bytes(first.Size))
	}
	for i := range found {
		m := &found[i]
		if m.Printed == nil || m.Role != first.Role || m.Size != first.Size || slices.Contains(headings, m.Name) {
			return headings, row, i
		}
		headings, row = append(headings, m.Name), append(row, units.Printed(m.Printed))
	}
	return headings, row, len(found)
}

// measureNames are the names of measurements, with the differences between those of one name.
func measureNames(found []record.Measure) []string {
	alike := make(map[string][]record.Measure)
	for i := range found {
		alike[found[i].Name] = append(alike[found[i].Name], found[i])
	}
	vary := make(map[string]map[string]bool, len(alike))
	for name, list := range alike {
		vary[name] = record.Varying(list)
		for i := range list {
			vary[name]["role"] = vary[name]["role"] || list[i].Role != list[0].Role
			vary[name]["peer"] = vary[name]["peer"] || list[i].Peer != list[0].Peer
		}
	}
	names := make([]string, len(found))
	for i := range found {
		m := &found[i]
		name := m.Name
		for _, knob := range m.Knobs() {
			if vary[m.Name][knob.Name] {
				name += ", " + knob.Value
			}
		}
		switch of := vary[m.Name]; {
		case m.Both || of["role"]:
			name += ", " + m.Role
		case of["peer"]:
			name += ", to " + m.Peer
		}
		if m.Cut {
			name += " (ended early)"
		}
		names[i] = name
	}
	return names
}

// measureRow is a measurement without its name.
func measureRow(m *record.Measure, units Units) []string {
	var row []string
	if m.Type != record.ConnectType {
		row = append(row, units.Bytes(m.Size))
	}
	row = append(row, fmt.Sprint(m.Messages))
	if m.Type == record.BandwidthType {
		least, most := unknown, unknown // without intervals
		if rates := record.IntervalRates(m); rates != nil {
			least, most = BitRate(slices.Min(rates)), BitRate(slices.Max(rates))
		}
		return append(row, BitRate(m.BitsPerSecond), least, most, PerSecond(m.MessagesPerSecond))
	}
	if m.Type == record.ConnectType {
		row = append(row, fmt.Sprint(m.Errors), PerSecond(m.MessagesPerSecond)+"/s")
	}
	for i := range m.Latency {
		if d := &m.Latency[i]; d.Of == "total" {
			if m.Type != record.ConnectType {
				row = append(row, units.nanoseconds(d.Min))
			}
			return append(
				row, units.nanoseconds(d.P50), units.nanoseconds(d.P99), units.nanoseconds(d.P999),
				units.nanoseconds(d.Max),
			)
		}
	}
	return row
}

// stepRows are the steps of connections in lockstep, which have a rate each.
func stepRows(m *record.Measure, units Units) [][]string {
	var rows [][]string
	for i := range m.Latency {
		d := &m.Latency[i]
		if d.Took <= 0 || d.Of == "total" {
			continue
		}
		rows = append(rows, []string{
			"  " + d.Of, fmt.Sprint(d.Count), "", PerSecond(float64(d.Count)/d.Took.Seconds()) + "/s",
			units.nanoseconds(d.P50), units.nanoseconds(d.P99), units.nanoseconds(d.P999), units.nanoseconds(d.Max),
		})
	}
	return rows
}

// lines are the table's lines, numbers to the right.
func (t *measureTable) lines() []string {
	widths := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	lines := make([]string, len(t.rows))
	for n, row := range t.rows {
		var b strings.Builder
		for i, cell := range row {
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				b.WriteString(cell + space)
			} else {
				b.WriteString("  " + space + cell)
			}
		}
		lines[n] = strings.TrimRight(b.String(), " ")
	}
	return lines
}

// fit shortens the names so that the lines are no wider than width, as far as names can be shortened; below 0 it is
// any.
func (t *measureTable) fit(width int) {
	widest, excess := 0, 0
	for _, line := range t.lines() {
		excess = max(excess, utf8.RuneCountInString(line)-width)
	}
	for _, row := range t.rows {
		widest = max(widest, utf8.RuneCountInString(row[0]))
	}
	if most := max(widest-excess, len(t.kind), shortestName); width > 0 && excess > 0 {
		for _, row := range t.rows {
			row[0] = cut(row[0], most)
		}
	}
}

// shortestName is how far a name may be shortened.
const shortestName = 14

// measures prints what was measured in a case.
func (h *Human) measures(found []record.Measure) {
	for _, table := range measureTables(found, h.options.Units) {
		table.fit(h.style.Width - len("      "))
		for i, line := range table.lines() {
			if i == 0 {
				line = h.style.dim(line)
			}
			h.print("      %s\n", line)
		}
	}
}

// measuring prints what a measurement has done in an interval: a bandwidth and the rates of it, a latency until its
// end.
func (h *Human) measuring(m *record.Measure) {
	if h.options.Quiet || len(m.Intervals) == 0 {
		return
	}
	h.below()
	name, size := m.Name, ""
	if m.Both {
		name += ", " + m.Role
	}
	if stage := m.Tags[record.StageTag]; stage != "" {
		name += ", " + stage
	}
	if m.Type != record.ConnectType {
		size = h.options.Units.Bytes(m.Size)
	}
	interval := m.Intervals[0]
	digits := 1
	if interval.End-interval.Begin < time.Second/2 {
		digits = 2
	}
	span := fmt.Sprintf("%.*f-%.*f s", digits, interval.Begin.Seconds(), digits, interval.End.Seconds())
	line := fmt.Sprintf("%-12s %8s %13s", name, size, span)
	if m.Type == record.BandwidthType {
		line += fmt.Sprintf(" %12s", BitRate(m.BitsPerSecond))
	}
	line += fmt.Sprintf(" %9s/s", PerSecond(m.MessagesPerSecond))
	for i := range m.Latency {
		if d := &m.Latency[i]; d.Of == "total" {
			line += fmt.Sprintf(
				"  p50 %s, p99 %s so far", h.options.Units.nanoseconds(d.P50), h.options.Units.nanoseconds(d.P99),
			)
		}
	}
	h.print("      %s\n", h.style.dim(line))
}
