package html

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"rdmarun/host/report/cases"
	"rdmarun/host/scenario/record"
)

// sizes gathers what was measured at several sizes of messages, over all cases.
type sizes struct {
	bandwidth, latency series
}

// series are values by size, by the name of a curve; those of the baseline beside those of the run.
type series struct {
	now, before map[string]map[int64]float64
}

func (s *sizes) add(c *cases.Case) {
	for _, m := range c.Measures.All() {
		s.measure(&m, false)
	}
	for i := range c.Before {
		s.measure(&c.Before[i], true)
	}
}

func (s *sizes) measure(m *record.Measure, before bool) {
	if m.Size <= 0 {
		return
	}
	if m.BitsPerSecond > 0 && m.Type != "latency" { // whose bandwidth says nothing
		s.bandwidth.note(seriesName(m), m.Size, m.BitsPerSecond/1e9, before)
	}
	for _, d := range m.Latency {
		if d.Count > 0 && (d.Of == "" || d.Of == "total") {
			s.latency.note(seriesName(m), m.Size, float64(d.P50)/1e3, before)
		}
	}
}

// seriesName does not mention the size, so that sizes of one measurement are one curve.
func seriesName(m *record.Measure) string {
	name := strings.TrimSpace(m.Type + " " + m.Operation + " " + m.Role)
	if m.Both {
		name += ", both ways"
	}
	return name
}

func (s *series) note(name string, size int64, value float64, before bool) {
	all := &s.now
	if before {
		all = &s.before
	}
	if *all == nil {
		*all = make(map[string]map[int64]float64)
	}
	if (*all)[name] == nil {
		(*all)[name] = make(map[int64]float64)
	}
	(*all)[name][size] = value
}

// charts are those of series with more than one size.
func (s *sizes) charts() ([]chart, error) {
	var charts []chart
	for _, each := range []struct {
		title, unit string
		of          *series
	}{{"Bandwidth by message size", "Gbit/s", &s.bandwidth}, {"Median latency by message size", "µs", &s.latency}} {
		c := newCanvas("message size", each.unit)
		if err := errors.Join(each.of.draw(c, each.of.now, false), each.of.draw(c, each.of.before, true)); err != nil {
			return nil, err
		}
		if c.empty() {
			continue
		}
		c.plot.X.Tick.Marker, c.plot.Y.Min = powers{}, 0
		drawn, err := c.render(each.title, chartHeight)
		if err != nil {
			return nil, err
		}
		charts = append(charts, drawn)
	}
	return charts, nil
}

func (s *series) draw(c *canvas, all map[string]map[int64]float64, before bool) error {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if len(all[name]) < 2 || len(s.now[name]) < 2 {
			continue
		}
		var points plotter.XYs
		for _, n := range slices.Sorted(maps.Keys(all[name])) {
			points = append(points, plotter.XY{X: math.Log2(float64(n)), Y: all[name][n]})
		}
		if err := c.add(name, points, true, before); err != nil {
			return err
		}
	}
	return nil
}

// powers are the ticks of an axis of sizes.
type powers struct{}

// Ticks implements plot.Ticker.
func (powers) Ticks(lowest, highest float64) []plot.Tick {
	var ticks []plot.Tick
	step := max(1, int(math.Ceil((highest-lowest)/8)))
	for i := int(math.Ceil(lowest)); float64(i) <= highest+0.01; i += step {
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: strings.ReplaceAll(size(int64(1)<<max(i, 0)), " ", "")})
	}
	return ticks
}
