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

// measureColumn is a column behind that of the names; that of numbers is on the right.
type measureColumn struct {
	Name   string
	Number bool
}

// measureRow is a line of the table.
type measureRow struct {
	Name, Knobs string
	Cells       []string
}

// measureColumns are those that rowOf fills, with the terminal's names. messages is what the kind counts, and rate is
// its rate.
func measureColumns(messages, rate string) []measureColumn {
	return []measureColumn{
		{"role", false}, {"size", true}, {messages, true}, {"errors", true}, {"value", true}, {"average", true},
		{"least", true}, {"most", true}, {rate, true},
		{"of", false}, {"min", true}, {"p50", true}, {"p99", true}, {"p99.9", true}, {"max", true},
	}
}

// measureTables are tables of bandwidths, of latencies, of connections, and of what programs printed.
func measureTables(measures []record.Measure) (tables []measureTable) {
	bandwidth := measureTable{Caption: "Bandwidth", Columns: measureColumns("messages", "messages/s")}
	latency := measureTable{Caption: "Latency", Columns: measureColumns("iterations", "iterations/s")}
	connect := measureTable{Caption: "Connect", Columns: measureColumns("count", "rate")}
	printed := measureTable{Caption: "Printed by programs", Columns: measureColumns("messages", "messages/s")}
	for i := range measures {
		m := &measures[i]
		table := &latency
		switch {
		case m.Printed != nil:
			table = &printed
		case m.Type == record.BandwidthType:
			table = &bandwidth
		case m.Type == record.ConnectType:
			table = &connect
		}
		for j := range m.Latency {
			table.Rows = append(table.Rows, rowOf(m, &m.Latency[j]))
		}
		if len(m.Latency) == 0 {
			table.Rows = append(table.Rows, rowOf(m, nil))
		}
	}
	for _, each := range []measureTable{bandwidth, latency, connect, printed} {
		if len(each.Rows) > 0 {
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
	var least, most float64 // unknown without intervals
	if rates := record.IntervalRates(m); rates != nil && m.HasBandwidth() {
		least, most = slices.Min(rates), slices.Max(rates)
	}
	row.Cells = []string{
		m.Role,
		text(m.Size > 0, func() string { return size(m.Size) }),
		text(m.Printed == nil, func() string { return strconv.FormatUint(m.Messages, 10) }),
		text(m.Errors > 0, func() string { return strconv.FormatUint(m.Errors, 10) }),
		text(m.Printed != nil, func() string { return narrow(terminal.Units{}.Printed(m.Printed)) }),
		text(m.HasBandwidth(), func() string { return narrow(terminal.BitRate(m.BitsPerSecond)) }),
		text(least > 0, func() string { return narrow(terminal.BitRate(least)) }),
		text(most > 0, func() string { return narrow(terminal.BitRate(most)) }),
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
