package html

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"rdmarun/host/output/html/plot"
	"rdmarun/host/record"
)

// maxCurves is the room for histograms of one name (record.HistogramRoom).
const maxCurves = 512

// latencyCharts are heat maps over sizes, the percentile curves and the histogram of the measurements of one name,
// with the baseline's curves. There are none if no times were measured.
func latencyCharts(g *measureGroup) []chart {
	l := latencies{curves: newAlbum(), histogram: newAlbum(), room: maxCurves}
	l.load(g, g.now, false)
	l.load(g, g.before, true)
	wide := l.wide()
	for _, each := range l.loaded {
		l.curves.add(plot.Curve{Name: each.name, Points: percentiles(each.Histogram), Dashed: each.before})
		l.histogram.add(plot.Curve{
			Name: each.name, Points: shares(each.Histogram, wide), Dashed: each.before, Filled: true,
		})
	}
	for _, each := range g.limited("latency", "p50", "p90", "p99", "p99_9", "p99_99") {
		at := map[string]float64{"p50": -math.Log10(0.5), "p90": 1, "p99": 2, "p99_9": 3, "p99_99": 4}[each.field]
		if at <= l.curves.bounds.right {
			y := each.value / 1e3
			l.curves.limit(plot.Curve{
				Name: each.text,
				Points: []plot.Point{
					{X: max(0, at-0.3), Y: y}, {X: at, Y: y}, {X: at, Y: min(y*1.6, max(y, l.curves.bounds.high))},
				},
			})
		}
	}
	first := l.curves.render(g.name+", by percentile", chartHeight, func(b bounds) (x, y plot.Axis) {
		x, y = nines(b.right), times(plot.FromZero(b.high, ticksUp))
		if wide || b.low > 0 && b.high/b.low > decades {
			y = times(plot.Powers(b.low, b.high, ticksUp+2))
		}
		return x, y
	})
	second := l.histogram.render(g.name+", distribution up to the 99.9th percentile", chartHeight,
		func(b bounds) (x, y plot.Axis) {
			x, y = times(plot.Even(b.left, b.right, ticksAcross)), plot.FromZero(b.high, ticksUp)
			if wide {
				x = times(plot.Powers(b.left, b.right, ticksAcross+1))
			}
			y.Label, y.Exact = "% of the samples", func(value float64) string { return plot.Number(value) + " %" }
			return x, y
		})
	charts := l.bySize(g)
	for i := range first { // they have the same curves, so as many pages
		charts = append(charts, first[i], second[i])
	}
	return charts
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
	room              int // for more of them
}

type distribution struct {
	name   string
	before bool
	// family is the name that distributions of other sizes have as well.
	family string
	size   int64
	*hdr.Histogram
}

// load adds the times of some measurements; those of one name are repetitions, of which all times count.
func (l *latencies) load(g *measureGroup, measures []record.Measure, before bool) {
	known := make(map[string]*distribution)
	for i := range measures {
		for _, d := range measures[i].Latency {
			if d.HDR == "" || d.Count == 0 {
				continue
			}
			h, err := record.ReadHistogram(d.HDR, &l.room)
			if err != nil {
				// a file of another program or host may lack the histogram: its values are shown without it
				continue
			}
			name := g.curve(&measures[i], d.Of)
			if same := known[name]; same != nil {
				same.Merge(h)
				continue
			}
			anySize := measures[i]
			anySize.Size = 0
			known[name] = &distribution{name, before, g.curve(&anySize, d.Of), measures[i].Size, h}
			l.loaded = append(l.loaded, known[name])
		}
	}
}

// wide reports whether the times are so far apart that most of them would be one line on a linear axis.
func (l *latencies) wide() bool {
	low, high := math.Inf(1), 1.0
	for _, each := range l.loaded {
		low, high = min(low, max(1, float64(each.Min()))), max(high, float64(each.Max()))
	}
	return high/low > 50
}

// A heat map needs so many sizes; the distributions of fewer are shown as curves.
const leastColumns = 3

// bySize are heat maps: for each size of messages the distribution of the times, a column each, with
// their medians as a curve.
func (l *latencies) bySize(g *measureGroup) (charts []chart) {
	families := make(map[string][]*distribution)
	var order []string // the families of which there is a map
	for _, each := range l.loaded {
		if each.before || each.size <= 0 {
			continue
		}
		families[each.family] = append(families[each.family], each)
		if len(families[each.family]) == leastColumns && len(order) < maxPages {
			order = append(order, each.family)
		}
	}
	for i, family := range order {
		p := heatMap(family, families[family])
		title := g.name + ", distribution by message size"
		if len(order) > 1 {
			title = fmt.Sprintf("%s (%d of %d)", title, i+1, len(order))
		}
		charts = append(charts, chart{
			Title: title, Legend: legendOf(p.Curves), SVG: template.HTML(p.SVG()), Says: p.Describe(),
		})
	}
	return charts
}

// heatMap has a column for each distribution, in the order of their sizes.
func heatMap(family string, columns []*distribution) *plot.Plot {
	slices.SortStableFunc(columns, func(a, b *distribution) int { return cmp.Compare(a.size, b.size) })
	low, high := math.Inf(1), 1.0
	for _, each := range columns {
		low, high = min(low, max(1, float64(each.Min()))), max(high, float64(each.ValueAtPercentile(99.9)))
	}
	p := &plot.Plot{Width: chartWidth, Height: chartHeight, Y: times(plot.Powers(low/1e3, high/1e3, ticksUp+2))}
	p.X = plot.Axis{Label: "message size", High: float64(len(columns))}
	p.X.Print = func(at float64) string { return narrow(size(columns[min(int(at), len(columns)-1)].size)) }
	medians := plot.Curve{Name: family + ", p50", Hue: 1, Dots: true}
	for i, each := range columns {
		left := float64(i)
		p.X.Ticks = append(p.X.Ticks, left+0.5)
		medians.Points = append(medians.Points, plot.Point{
			X: left + 0.5, Y: max(1, float64(each.ValueAtPercentile(50))) / 1e3,
		})
		p.Cells = append(p.Cells, cells(each, left, low, high)...)
	}
	p.Curves = []plot.Curve{medians}
	return p
}

// cells are the column of a distribution: times from low to high nanoseconds, each cell larger than the one below it by
// the same factor.  The fullest is the darkest, and by the root few samples are seen as well.
func cells(d *distribution, left, low, high float64) []plot.Cell {
	const rows = 40
	factor := max(math.Pow(high/low, 1.0/rows), 1+1/low) // a nanosecond is the smallest difference
	counts, most := make([]float64, rows+1), 0.0
	for _, each := range d.Distribution() {
		if row := int(math.Log(max(low, float64(each.From))/low) / math.Log(factor)); row <= rows {
			counts[row] += float64(each.Count)
			most = max(most, counts[row])
		}
	}
	var list []plot.Cell
	for row, count := range counts {
		if count == 0 {
			continue
		}
		bottom := low * math.Pow(factor, float64(row))
		list = append(list, plot.Cell{
			Left: left + 0.1, Right: left + 0.9, Low: bottom / 1e3, High: bottom * factor / 1e3,
			Dark: max(0.05, math.Sqrt(count/most)),
			Says: fmt.Sprintf(
				"%s, %s to %s: %s %%", size(d.size), duration(time.Duration(bottom)),
				duration(time.Duration(bottom*factor)), plot.Number(100*count/float64(d.TotalCount())),
			),
		})
	}
	return list
}

// percentiles is the curve as HdrHistogram's own tools plot it. x counts the nines, so that 99 %, 99.9 % and 99.99 %
// are as far apart as 90 % and 99 %.
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
		width = scale(back(low)+1) - low // a nanosecond is the smallest difference
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
