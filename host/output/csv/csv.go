// Package csv writes a table for spreadsheets. It has a row for each case, named loop, threshold, measurement and pair
// of a mesh. It also has one for each counter that has grown, each fault and each step that xfailed.
package csv

import (
	"cmp"
	"encoding/csv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdmarun/host/output/cases"
	"rdmarun/host/output/outfile"
	"rdmarun/host/record"
)

// columns begin every row with the same four; a cell without meaning is empty.  Times are in microseconds
// and rates in Gbit/s, as perftest prints them, under names near its own.
var columns = []string{
	"kind", "file", "case", "attempt", // of all: case, loop, threshold, measure, pair, counter, fault, xfail
	"status", "message", "params", "took_us",
	"name", "type", "operation", "role", "peer", "direction", "size", "depth", "qps", "tags", "iterations",
	"bw_average_gbps", "msg_rate_mpps",
	"t_of", "t_min_us", "t_typical_us", "t_avg_us", "t_stdev_us", "t_90_us", "t_99_us", "t_99.9_us", "t_99.99_us",
	"t_max_us",
	"of_best",           // of pairs: how near to the best of the mesh, 1 is as good
	"host", "peer_host", // of pairs: where the ends are, in a lab
	"value", "unit", // of what programs print: in ns, bit/s, /s, B or 1
	"device", "count", // of counters, faults and steps that xfailed: how often
	// of loops: the clock of their times, virtual or wall, and the rounds that began later than due, or did not begin
	"clock", "late", "dropped",
}

// Writer is the output.
type Writer struct {
	file    *outfile.File
	table   *csv.Writer
	tracker *cases.Tracker
	begun   bool
}

// New writes to file.
func New(file *outfile.File) *Writer {
	return &Writer{file: file, table: csv.NewWriter(file), tracker: cases.NewTracker(cases.Limits{Measures: true})}
}

// Wants implements record.Consumer.
func (w *Writer) Wants(kind record.Kind) bool {
	return kind != record.StepEnd && kind != record.Output
}

// Record implements record.Consumer.
func (w *Writer) Record(r *record.Record) error {
	c := w.tracker.Record(r)
	if c == nil {
		return nil
	}
	return w.add(c)
}

// Close implements report.Output.
func (w *Writer) Close() error {
	defer w.file.Discard()
	for _, c := range w.tracker.Unfinished() {
		if err := w.add(c); err != nil {
			return err
		}
	}
	if err := w.heading(); err != nil {
		return err
	}
	w.table.Flush()
	if err := w.table.Error(); err != nil {
		return err
	}
	return w.file.Commit()
}

func (w *Writer) heading() error {
	if w.begun {
		return nil
	}
	w.begun = true
	return w.table.Write(columns)
}

// row is what some columns have.
type row map[string]string

func (w *Writer) write(c *cases.Case, kind string, values row) error {
	values["kind"], values["file"], values["case"], values["attempt"] = kind, c.File, c.ID, strconv.Itoa(c.Attempt)
	cells := make([]string, len(columns))
	for i, name := range columns {
		cells[i] = harmless(values[name])
	}
	return w.table.Write(cells)
}

func (w *Writer) add(c *cases.Case) error {
	if err := w.heading(); err != nil {
		return err
	}
	var params []string
	for _, name := range slices.Sorted(maps.Keys(c.Start.Params)) {
		params = append(params, name+"="+c.Start.Params[name])
	}
	err := w.write(c, "case", row{
		"name": c.Result.Name, "status": string(c.Result.Status), "message": c.Message(),
		"tags":   strings.Join(c.Start.Tags, " "),
		"params": strings.Join(params, " "), "took_us": micro(float64(c.Result.Took)),
	})
	if err != nil {
		return err
	}
	for _, loop := range c.Result.Loops {
		values := row{
			"name": loop.Name, "tags": record.TagText(loop.Tags), "iterations": strconv.Itoa(loop.Rounds),
			"clock": loop.ClockName(), "late": strconv.Itoa(loop.Late), "dropped": strconv.Itoa(loop.Dropped),
		}
		if times := loop.OnClock(); loop.Rounds > 0 {
			values["t_min_us"], values["t_typical_us"] = micro(float64(times.Min)), micro(float64(times.Median))
			values["t_99_us"], values["t_max_us"] = micro(float64(times.P99)), micro(float64(times.Max))
		}
		if err := w.write(c, "loop", values); err != nil {
			return err
		}
	}
	for _, threshold := range c.Thresholds.All() {
		err := w.write(c, "threshold", row{
			"name": threshold.Text, "status": string(threshold.Status()),
			"message": cmp.Or(threshold.Reason, threshold.Value),
		})
		if err != nil {
			return err
		}
	}
	kinds, rows := tallyRows(&c.Result.Tallies)
	for i, values := range rows {
		if err := w.write(c, kinds[i], values); err != nil {
			return err
		}
	}
	for _, m := range c.Measures {
		if err := w.measure(c, &m); err != nil {
			return err
		}
	}
	for i := range c.Meshes {
		if err := w.mesh(c, &c.Meshes[i]); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) measure(c *cases.Case, m *record.Measure) error {
	for _, values := range measureRows(m) {
		if err := w.write(c, "measure", values); err != nil {
			return err
		}
	}
	return nil
}

// mesh writes a row for each pair, with its figures of the last look.
func (w *Writer) mesh(c *cases.Case, found *record.Mesh) error {
	hosts := make(map[string]string)
	for _, node := range found.Nodes {
		hosts[node.Role] = node.Host
	}
	for pair, measure := range found.Measures() {
		for _, values := range measureRows(measure) {
			values["host"], values["peer_host"] = hosts[pair.From], hosts[pair.To]
			values["status"], values["message"], values["of_best"] = pair.Status(), pair.Lost,
				strconv.FormatFloat(pair.OfBest, 'f', 4, 64)
			if err := w.write(c, "pair", values); err != nil {
				return err
			}
		}
	}
	return nil
}

// tallyRows are the rows of what the case has counted, by their kinds.
func tallyRows(t *record.Tallies) (kinds []string, rows []row) {
	add := func(kind string, values row) { kinds, rows = append(kinds, kind), append(rows, values) }
	for i := range t.Known {
		each := &t.Known[i]
		add("xfail", row{
			"name": each.Reason, "message": each.String(), "role": each.Role,
			"count": strconv.FormatUint(each.Count, 10),
		})
	}
	for _, each := range t.Faults {
		add("fault", row{"name": each.Name, "count": strconv.FormatUint(each.Count, 10)})
	}
	for _, each := range t.Counters {
		add("counter", row{
			"name": each.Name, "device": each.Device, "host": each.Host, "count": strconv.FormatUint(each.Grew, 10),
		})
	}
	return kinds, rows
}

// measureRows are the rows of a measurement: one, or one for each step of which there are times.
func measureRows(m *record.Measure) []row {
	base := row{
		"name": m.Name, "type": m.Type, "operation": m.Operation, "role": m.Role, "peer": m.Peer,
		"direction": m.Direction(), "size": strconv.FormatInt(m.Size, 10),
		"depth": positive(m.Depth), "qps": positive(m.QPs), "tags": record.TagText(m.Tags),
		"iterations": strconv.FormatUint(m.Messages, 10), "took_us": micro(float64(m.Took)),
	}
	if p := m.Printed; p != nil {
		base["value"], base["unit"] = strconv.FormatFloat(p.Value, 'g', -1, 64), string(p.Unit)
		base["direction"], base["iterations"], base["took_us"] = "", "", ""
	}
	if m.HasBandwidth() {
		base["bw_average_gbps"] = rate(m.BitsPerSecond / 1e9)
	}
	if m.HasRate() {
		base["msg_rate_mpps"] = rate(m.MessagesPerSecond / 1e6)
	}
	if len(m.Latency) == 0 {
		return []row{base}
	}
	var rows []row
	for _, d := range m.Latency {
		values := maps.Clone(base)
		maps.Copy(values, row{
			"t_of": d.Of, "t_min_us": micro(float64(d.Min)), "t_typical_us": micro(float64(d.P50)),
			"t_avg_us":   micro(d.Mean),
			"t_stdev_us": micro(d.StdDev), "t_90_us": micro(float64(d.P90)), "t_99_us": micro(float64(d.P99)),
			"t_99.9_us": micro(float64(d.P999)), "t_99.99_us": micro(float64(d.P9999)),
			"t_max_us": micro(float64(d.Max)),
		})
		rows = append(rows, values)
	}
	return rows
}

func positive(n int) string {
	if n <= 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func micro(nanoseconds float64) string {
	return strconv.FormatFloat(nanoseconds/float64(time.Microsecond), 'f', 3, 64)
}

func rate(value float64) string {
	return strconv.FormatFloat(value, 'f', 6, 64)
}

// harmless keeps a spreadsheet from taking a text for a formula.
func harmless(text string) string {
	if text == "" || !strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return text
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return text
	}
	return "'" + text
}

// Discard drops the report.
func (w *Writer) Discard() { w.file.Discard() }
