package html

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"rdmarun/host/output/terminal"
	"rdmarun/host/record"
)

// measureTable is a table of the measurements of one kind.  A column that is empty in every row is left out.
type measureTable struct {
	Caption string
	Columns []measureColumn
	Rows    []measureRow
}

// measureColumn is a column behind that of the names; that of numbers stands to the right.
type measureColumn struct {
	Name   string
	Number bool
}

// measureRow is a line of the table.
type measureRow struct {
	Name, Knobs string
	Cells       []string
}

// measureColumns are those that cells fills.
var measureColumns = []measureColumn{
	{"role", false}, {"size", true}, {"messages", true}, {"errors", true}, {"bandwidth", true}, {"rate", true},
	{"of", false}, {"min", true}, {"median", true}, {"99 %", true}, {"99.9 %", true}, {"max", true},
}

// measureTables are tables of measurements without times, and of those that have some.
func measureTables(measures []record.Measure) (tables []measureTable) {
	var bare, timed []measureRow
	for i := range measures {
		m := &measures[i]
		if len(m.Latency) == 0 && m.Type == "bandwidth" {
			bare = append(bare, rowOf(m, nil))
			continue
		}
		for j := range m.Latency {
			timed = append(timed, rowOf(m, &m.Latency[j]))
		}
		if len(m.Latency) == 0 {
			timed = append(timed, rowOf(m, nil))
		}
	}
	for _, each := range []measureTable{{Caption: "Bandwidth", Rows: bare}, {Caption: "Times", Rows: timed}} {
		if len(each.Rows) > 0 {
			each.Columns = slices.Clone(measureColumns)
			each.shorten()
			tables = append(tables, each)
		}
	}
	return tables
}

func rowOf(m *record.Measure, times *record.Distribution) measureRow {
	row := measureRow{Name: m.Name}
	var words []string
	for _, each := range m.Knobs() {
		if !strings.Contains(m.Name, each.Value) {
			words = append(words, each.Value)
		}
	}
	row.Knobs = strings.Join(words, " · ")
	text := func(has bool, text func() string) string {
		if !has {
			return ""
		}
		return text()
	}
	at := func(ns func() int64) string {
		return text(times != nil, func() string { return duration(time.Duration(ns())) })
	}
	row.Cells = []string{
		m.Role,
		text(m.Size > 0, func() string { return size(m.Size) }),
		strconv.FormatUint(m.Messages, 10),
		text(m.Errors > 0, func() string { return strconv.FormatUint(m.Errors, 10) }),
		text(m.HasBandwidth(), func() string { return narrow(terminal.BitRate(m.BitsPerSecond)) }),
		text(m.HasRate(), func() string { return narrow(terminal.PerSecond(m.MessagesPerSecond)) + "/s" }),
		text(times != nil && times.Of != "total", func() string { return times.Of }),
		at(func() int64 { return times.Min }),
		at(func() int64 { return times.P50 }),
		at(func() int64 { return times.P99 }),
		at(func() int64 { return times.P999 }),
		at(func() int64 { return times.Max }),
	}
	return row
}

// shorten leaves out the columns that are empty.
func (t *measureTable) shorten() {
	for i := len(t.Columns) - 1; i >= 0; i-- {
		if slices.ContainsFunc(t.Rows, func(row measureRow) bool { return row.Cells[i] != "" }) {
			continue
		}
		t.Columns = slices.Delete(t.Columns, i, i+1)
		for j := range t.Rows {
			t.Rows[j].Cells = slices.Delete(t.Rows[j].Cells, i, i+1)
		}
	}
}
