package html

import (
	"fmt"
	"math"
	"strconv"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"rdmarun/host/report/cases"
	"rdmarun/host/scenario/record"
)

// maxCurves is how many curves one picture can carry.
const maxCurves = 6

// latencyCharts are the percentile curves and the histogram of a case; none where nothing was measured.
func latencyCharts(c *cases.Case) ([]chart, error) {
	var (
		curves    = newPlot("percentile", "µs")
		histogram = newPlot("µs", "share of samples")
		drawn     int
		highest   = 1.0
	)
	for _, m := range c.Measures.All() {
		for _, d := range m.Latency {
			if d.HDR == "" || d.Count == 0 || drawn == maxCurves {
				continue
			}
			h, err := hdr.Decode([]byte(d.HDR))
			if err != nil {
				return nil, fmt.Errorf("the histogram of %s, %s: %w", c.ID, m.Name, err)
			}
			points := percentiles(h)
			highest = max(highest, points[len(points)-1].X)
			if err := addLine(curves, drawn, curveName(&m, &d), points, false); err != nil {
				return nil, err
			}
			if err := addLine(histogram, drawn, curveName(&m, &d), shares(h), false); err != nil {
				return nil, err
			}
			drawn++
		}
	}
	if drawn == 0 {
		return nil, nil
	}
	curves.X.Tick.Marker = nines{}
	curves.X.Max = highest
	curves.Y.Min = 0
	first, err := render("Latency by percentile", curves)
	if err != nil {
		return nil, err
	}
	histogram.Legend.XOffs = chartWidth / 2 // the peak is on the left
	second, err := render("Distribution up to the 99.9th percentile", histogram)
	return []chart{first, second}, err
}

func curveName(m *record.Measure, d *record.Distribution) string {
	name := m.Name
	if m.Size > 0 {
		name += " " + size(m.Size)
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
		points[i] = plotter.XY{X: (low + (float64(i)+0.5)*width) / 1e3, Y: n / float64(h.TotalCount())}
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
