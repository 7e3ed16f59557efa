package html

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"rdmarun/host/output/html/plot"
	"rdmarun/host/record"
)

// latencyCharts are the percentile curves and the histogram of the measurements of one name, the baseline's beside the
// run's; none if no times were measured.
func latencyCharts(g *measureGroup) ([]chart, error) {
	l := latencies{curves: newAlbum(), histogram: newAlbum()}
	if err := errors.Join(l.load(g, g.now, false), l.load(g, g.before, true)); err != nil {
		return nil, fmt.Errorf("%s: %w", g.name, err)
	}
	wide := l.wide()
	for _, each := range l.loaded {
		l.curves.add(plot.Curve{Name: each.name, Points: percentiles(each.Histogram), Dashed: each.before})
		l.histogram.add(plot.Curve{Name: each.name, Points: shares(each.Histogram, wide), Dashed: each.before, Filled: true})
	}
	first := l.curves.render(g.name+", by percentile", chartHeight, func(b bounds) (x, y plot.Axis) {
		x, y = nines(b.right), times(plot.FromZero(b.high, ticksUp))
		if wide {
			y = times(plot.Powers(b.low, b.high, ticksUp+2))
		}
		return x, y
	})
	second := l.histogram.render(g.name+", distribution up to the 99.9th percentile", chartHeight, func(b bounds) (x, y plot.Axis) {
		x, y = times(plot.Even(b.left, b.right, ticksAcross)), plot.FromZero(b.high, ticksUp)
		if wide {
			x = times(plot.Powers(b.left, b.right, ticksAcross+1))
		}
		y.Label, y.Exact = "% of the samples", func(value float64) string { return plot.Number(value) + " %" }
		return x, y
	})
	var charts []chart
	for i := range first { // they have the same curves, so as many pages
		charts = append(charts, first[i], second[i])
	}
	return charts, nil
}

// times makes an axis one of times, in microseconds.
func times(a plot.Axis) plot.Axis {
	a.Print = func(us float64) string {
		switch {
		case us == 0:
			return "0"
		case us < 1:
			return narrow(plot.Number(us*1e3) + " ns")
		case us < 1e3:
			return narrow(plot.Number(us) + " us")
		case us < 1e6:
			return narrow(plot.Number(us/1e3) + " ms")
		}
		return narrow(plot.Number(us/1e6) + " s")
	}
	a.Exact = func(us float64) string { return duration(time.Duration(math.Round(us * 1e3))) }
	return a
}

type latencies struct {
	curves, histogram *album
	loaded            []*distribution
}

type distribution struct {
	name   string
	before bool
	*hdr.Histogram
}

// load adds the times of some measurements; those of one name are repetitions, of which all times count.
func (l *latencies) load(g *measureGroup, measures []record.Measure, before bool) error {
	known := make(map[string]*distribution)
	for i := range measures {
		for _, d := range measures[i].Latency {
			if d.HDR == "" || d.Count == 0 {
				continue
			}
			h, err := hdr.Decode([]byte(d.HDR))
			if err != nil {
				return fmt.Errorf("the histogram of %s: %w", g.curve(&measures[i], d.Of), err)
			}
			name := g.curve(&measures[i], d.Of)
			if same := known[name]; same != nil {
				same.Merge(h)
				continue
			}
			known[name] = &distribution{name, before, h}
			l.loaded = append(l.loaded, known[name])
		}
	}
	return nil
}

// wide tells that the times are so far apart that most of them would be one line on a linear axis.
func (l *latencies) wide() bool {
	low, high := math.Inf(1), 1.0
	for _, each := range l.loaded {
		low, high = min(low, max(1, float64(each.Min()))), max(high, float64(each.Max()))
	}
	return high/low > 50
}

// percentiles is the curve as HdrHistogram's own tools plot it: x counts the nines, so that 99 %, 99.9 %
// and 99.99 % stand as far apart as 90 % and 99 %.
func percentiles(h *hdr.Histogram) []plot.Point {
	most := math.Log10(float64(h.TotalCount()))
	var points []plot.Point
	for _, bracket := range h.CumulativeDistributionWithTicks(10) {
		x := most
		if bracket.Quantile < 100 {
			x = min(-math.Log10(1-bracket.Quantile/100), most)
		}
		at := strconv.FormatFloat(bracket.Quantile, 'f', min(1+int(x), 6), 64)
		points = append(points, plot.Point{X: x, Y: max(1, float64(bracket.ValueAt)) / 1e3, At: at + " %"})
	}
	return points
}

// shares is the histogram, in 60 bins; in a wide one, each bin is larger than the one before by the same factor.
func shares(h *hdr.Histogram, wide bool) []plot.Point {
	const bins = 60
	scale, back := func(v float64) float64 { return v }, func(v float64) float64 { return v }
	if wide {
		scale, back = math.Log, math.Exp
	}
	low, high := scale(max(1, float64(h.Min()))), scale(max(1, float64(h.ValueAtPercentile(99.9))))
	width := (high - low) / bins
	if back(low+width)-back(low) < 1 {
		width = scale(back(low)+1) - low // a nanosecond is the least that is told apart
	}
	counts := make([]float64, bins+1)
	for _, each := range h.Distribution() {
		if bin := int((scale(max(1, float64(each.From))) - low) / width); bin >= 0 && bin <= bins {
			counts[bin] += float64(each.Count)
		}
	}
	points := make([]plot.Point, len(counts))
	for i, n := range counts {
		points[i] = plot.Point{X: back(low+(float64(i)+0.5)*width) / 1e3, Y: 100 * n / float64(h.TotalCount())}
	}
	return points
}

// nines is the percentile axis.
func nines(highest float64) plot.Axis {
	highest = max(1, highest)
	a := plot.Axis{Label: "percentile", High: highest}
	for i := 0; float64(i) <= highest+0.01; i++ {
		a.Ticks = append(a.Ticks, float64(i))
	}
	a.Print = func(nines float64) string {
		if nines == 0 {
			return "0"
		}
		return strconv.FormatFloat(100-math.Pow(10, 2-nines), 'f', max(int(nines)-2, 0), 64)
	}
	return a
}
