package html

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"rdmarun/host/report/cases"
	"rdmarun/host/scenario/record"
)

// latencyCharts are the percentile curves and the histogram of a case, the baseline's beside the run's; none where
// nothing was measured.
func latencyCharts(c *cases.Case) ([]chart, error) {
	l := latencies{curves: newCanvas("percentile", "µs"), histogram: newCanvas("µs", "% of the samples"), highest: 1}
	for _, m := range c.Measures.All() {
		if err := l.add(c, &m, false); err != nil {
			return nil, err
		}
	}
	if l.curves.empty() {
		return nil, nil
	}
	for i := range c.Before {
		if err := l.add(c, &c.Before[i], true); err != nil {
			return nil, err
		}
	}
	l.curves.plot.X.Tick.Marker = nines{}
	l.curves.plot.X.Max = l.highest
	l.curves.plot.Y.Min, l.histogram.plot.Y.Min = 0, 0
	first, err := l.curves.render("Latency by percentile", chartHeight)
	if err != nil {
		return nil, err
	}
	second, err := l.histogram.render("Distribution up to the 99.9th percentile", chartHeight)
	return []chart{first, second}, err
}

type latencies struct {
	curves, histogram *canvas
	highest           float64 // of the curves' x
}

func (l *latencies) add(c *cases.Case, m *record.Measure, before bool) error {
	for _, d := range m.Latency {
		if d.HDR == "" || d.Count == 0 {
			continue
		}
		h, err := hdr.Decode([]byte(d.HDR))
		if err != nil {
			return fmt.Errorf("the histogram of %s, %s: %w", c.ID, m.Name, err)
		}
		points, name := percentiles(h), curveName(m, &d)
		if _, full := l.curves.hue(name); !full {
			l.highest = max(l.highest, points[len(points)-1].X)
		}
		if err := errors.Join(l.curves.add(name, points, false, before), l.histogram.add(name, shares(h), false, before)); err != nil {
			return err
		}
	}
	return nil
}

func curveName(m *record.Measure, d *record.Distribution) string {
	name := m.Name
	if m.Size > 0 && !strings.Contains(name, strconv.FormatInt(m.Size, 10)) {
		name += " " + size(m.Size)
	}
	if m.Role != "" {
		name += " " + m.Role
	}
	if d.Of != "" && d.Of != "total" {
		name += ", " + d.Of
	}
	return name
}

// percentiles is the curve as HdrHistogram's own tools plot it: x counts the nines, so that 99 %, 99.9 %
// and 99.99 % stand as far apart as 90 % and 99 %.
func percentiles(h *hdr.Histogram) plotter.XYs {
	most := math.Log10(float64(h.TotalCount()))
	var points plotter.XYs
	for _, bracket := range h.CumulativeDistributionWithTicks(10) {
		x := most
		if bracket.Quantile < 100 {
			x = min(-math.Log10(1-bracket.Quantile/100), most)
		}
		points = append(points, plotter.XY{X: x, Y: float64(bracket.ValueAt) / 1e3})
	}
	return points
}

// shares is the histogram, in bins as wide as 1/60 of what it shows.
func shares(h *hdr.Histogram) plotter.XYs {
	const bins = 60
	low, high := float64(h.Min()), float64(h.ValueAtPercentile(99.9))
	width := max((high-low)/bins, 1)
	counts := make([]float64, bins+1)
	for _, each := range h.Distribution() {
		if bin := int((float64(each.From) - low) / width); bin >= 0 && bin <= bins {
			counts[bin] += float64(each.Count)
		}
	}
	points := make(plotter.XYs, len(counts))
	for i, n := range counts {
		points[i] = plotter.XY{X: (low + (float64(i)+0.5)*width) / 1e3, Y: 100 * n / float64(h.TotalCount())}
	}
	return points
}

// nines are the ticks of the percentile axis.
type nines struct{}

// Ticks implements plot.Ticker.
func (nines) Ticks(_, highest float64) []plot.Tick {
	ticks := []plot.Tick{{Value: 0, Label: "0"}}
	for i := 1; float64(i) <= highest+0.01; i++ {
		label := strconv.FormatFloat(100-math.Pow(10, float64(2-i)), 'f', max(i-2, 0), 64)
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: label})
	}
	return ticks
}
