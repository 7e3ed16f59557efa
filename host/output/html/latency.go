package html

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"rdmarun/host/record"
)

// latencyCharts are the percentile curves and the histogram of what is called by one name, the baseline's beside the
// run's; none where no times were measured.
func latencyCharts(g *measureGroup) ([]chart, error) {
	l := latencies{curves: newAlbum("percentile", "us"), histogram: newAlbum("us", "% of the samples"), highest: 1}
	if err := errors.Join(l.load(g, g.now, false), l.load(g, g.before, true)); err != nil {
		return nil, fmt.Errorf("%s: %w", g.name, err)
	}
	wide := l.wide()
	for _, each := range l.loaded {
		if err := each.draw(&l, wide); err != nil {
			return nil, err
		}
	}
	first, err := l.curves.render(g.name+", by percentile", chartHeight, func(c *canvas) {
		c.plot.X.Tick.Marker, c.plot.X.Max = nines{}, l.highest
		if wide {
			logarithmic(&c.plot.Y)
		} else {
			c.plot.Y.Min = 0
		}
	})
	if err != nil {
		return nil, err
	}
	second, err := l.histogram.render(g.name+", distribution up to the 99.9th percentile", chartHeight, func(c *canvas) {
		c.plot.Y.Min = 0
		if wide {
			logarithmic(&c.plot.X)
		}
	})
	if err != nil {
		return nil, err
	}
	var charts []chart
	for i := range first { // they have the same curves, so as many pages
		charts = append(charts, first[i], second[i])
	}
	return charts, nil
}

type latencies struct {
	curves, histogram *album
	highest           float64 // of the curves' x
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

// wide tells that the times lie so far apart that on an even axis most of them would be one line.
func (l *latencies) wide() bool {
	low, high := math.Inf(1), 1.0
	for _, each := range l.loaded {
		low, high = min(low, max(1, float64(each.Min()))), max(high, float64(each.Max()))
	}
	return high/low > 50
}

func (d *distribution) draw(l *latencies, wide bool) error {
	points := percentiles(d.Histogram)
	l.highest = max(l.highest, points[len(points)-1].X)
	return errors.Join(l.curves.add(d.name, points, false, d.before), l.histogram.add(d.name, shares(d.Histogram, wide), false, d.before))
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
		points = append(points, plotter.XY{X: x, Y: max(1, float64(bracket.ValueAt)) / 1e3})
	}
	return points
}

// shares is the histogram, in bins as wide as 1/60 of what it shows; in wide ones, each bin is as many times as high
// as the one before.
func shares(h *hdr.Histogram, wide bool) plotter.XYs {
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
	points := make(plotter.XYs, len(counts))
	for i, n := range counts {
		points[i] = plotter.XY{X: back(low+(float64(i)+0.5)*width) / 1e3, Y: 100 * n / float64(h.TotalCount())}
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
