package html

import (
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
	bandwidth map[string]map[int64]float64 // Gbit/s by series and size
	latency   map[string]map[int64]float64 // µs
}

func (s *sizes) add(c *cases.Case) {
	if s.bandwidth == nil {
		s.bandwidth, s.latency = make(map[string]map[int64]float64), make(map[string]map[int64]float64)
	}
	for _, m := range c.Measures.All() {
		if m.Size <= 0 {
			continue
		}
		if m.BitsPerSecond > 0 {
			note(s.bandwidth, seriesName(&m), m.Size, m.BitsPerSecond/1e9)
		}
		for _, d := range m.Latency {
			if d.Count > 0 && (d.Of == "" || d.Of == "total") {
				note(s.latency, seriesName(&m), m.Size, float64(d.P50)/1e3)
			}
		}
	}
}

// seriesName does not mention the size, so that sizes of one measurement are one curve.
func seriesName(m *record.Measure) string {
	return strings.TrimSpace(m.Type + " " + m.Operation + " " + m.Role)
}

func note(all map[string]map[int64]float64, series string, size int64, value float64) {
	if all[series] == nil {
		all[series] = make(map[int64]float64)
	}
	all[series][size] = value
}

// charts are those of series with more than one size.
func (s *sizes) charts() ([]chart, error) {
	var charts []chart
	for _, each := range []struct {
		title, unit string
		all         map[string]map[int64]float64
	}{{"Bandwidth by message size", "Gbit/s", s.bandwidth}, {"Median latency by message size", "µs", s.latency}} {
		p, drawn := newPlot("message size", each.unit), 0
		for _, name := range slices.Sorted(maps.Keys(each.all)) {
			values := each.all[name]
			if len(values) < 2 || drawn == maxCurves {
				continue
			}
			var points plotter.XYs
			for _, n := range slices.Sorted(maps.Keys(values)) {
				points = append(points, plotter.XY{X: math.Log2(float64(n)), Y: values[n]})
			}
			if err := addLine(p, drawn, name, points, true); err != nil {
				return nil, err
			}
			drawn++
		}
		if drawn == 0 {
			continue
		}
		p.X.Tick.Marker, p.Y.Min = powers{}, 0
		drawnChart, err := render(each.title, p)
		if err != nil {
			return nil, err
		}
		charts = append(charts, drawnChart)
	}
	return charts, nil
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
