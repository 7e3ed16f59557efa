package html

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"rdmarun/host/output/cases"
	"rdmarun/host/output/html/plot"
	"rdmarun/host/record"
)

// sizes gathers what was measured at several sizes of messages, over all cases.
type sizes struct {
	bandwidth, latency []sized
	// leastBandwidth and maxLatency are the thresholds of those figures.
	leastBandwidth, maxLatency []sizeLimit
}

// sizeLimit is a threshold, with what it allows at sizes.
type sizeLimit struct {
	text   string
	points []plot.Point
}

// sized is one figure.
type sized struct {
	// base is what was measured, details are the other differences between curves.
	base    string
	details []record.Fact
	before  bool // of the baseline
	size    int64
	value   float64 // NaN: nothing was measured of that size, which no line may cross
}

func (s *sizes) add(c *cases.Case) {
	for i := range c.Measures {
		s.measure(c, &c.Measures[i], false)
	}
	for i := range c.Before {
		s.measure(c, &c.Before[i], true)
	}
	for _, each := range c.Thresholds.All() {
		switch {
		case each.Metric == "bandwidth" && each.Field == "avg":
			s.leastBandwidth = addLimit(s.leastBandwidth, &each, 1e9)
		case each.Metric == "latency" && each.Field == "p50":
			s.maxLatency = addLimit(s.maxLatency, &each, 1e3)
		}
	}
}

// addLimit adds a threshold, in a unit of so many of its own, unless the list has an equal one.
func addLimit(list []sizeLimit, of *record.Threshold, unit float64) []sizeLimit {
	limit := sizeLimit{text: of.Text}
	for _, each := range of.Bounds {
		if point := (plot.Point{X: float64(each.Size), Y: each.Value / unit}); each.Size > 0 &&
			!slices.Contains(limit.points, point) {
			limit.points = append(limit.points, point)
		}
	}
	slices.SortStableFunc(limit.points, func(a, b plot.Point) int { return cmp.Compare(a.X, b.X) })
	if len(limit.points) == 0 ||
		slices.ContainsFunc(list, func(other sizeLimit) bool { return slices.Equal(other.points, limit.points) }) {
		return list
	}
	return append(list, limit)
}

func (s *sizes) measure(c *cases.Case, m *record.Measure, before bool) {
	if m.Size <= 0 {
		return
	}
	each := sized{base: strings.TrimSpace(m.Type + " " + m.Operation + " " + m.Role), before: before, size: m.Size}
	if m.Both {
		each.base += ", both ways"
	}
	each.details = append([]record.Fact{{Name: "case", Value: c.Result.Name}}, m.Knobs()...)
	each.details = append(each.details, record.Fact{Name: "name", Value: m.Name}, record.Fact{Name: "id", Value: c.ID})
	if m.HasBandwidth() {
		each.value = m.BitsPerSecond / 1e9
		s.bandwidth = append(s.bandwidth, each)
	}
	if m.Type == record.LatencyType && m.Messages == 0 {
		each.value = math.NaN()
		s.latency = append(s.latency, each)
	}
	for _, d := range m.Latency {
		if d.Count > 0 && (d.Of == "" || d.Of == "total") {
			each.value = float64(d.P50) / 1e3
			s.latency = append(s.latency, each)
		}
	}
}

// series are values by size, those of the baseline and those of the run.
type series struct {
	name        string
	now, before map[int64]float64
}

// seriesOf makes curves of figures. The sizes of one measurement are one curve. If two values would be at the same
// place of a curve, it is split by the first detail in which they differ. So none hides another.
func seriesOf(figures []sized) []*series {
	var list []*series
	for _, group := range split(figures, func(each *sized) string { return each.base }) {
		list = append(list, separate(group[0].base, group, detailNames(group))...)
	}
	return list
}

// detailNames lists the details that any of the figures has.
func detailNames(figures []sized) []string {
	var names []string
	for i := range figures {
		for _, each := range figures[i].details {
			if !slices.Contains(names, each.Name) {
				names = append(names, each.Name)
			}
		}
	}
	return names
}

func separate(name string, figures []sized, details []string) []*series {
	for i, detail := range details {
		if !collide(figures) {
			break
		}
		parts := split(figures, func(each *sized) string { return valueOf(each.details, detail) })
		if len(parts) < 2 {
			continue
		}
		var list []*series
		for _, part := range parts {
			longer := name
			if value := valueOf(part[0].details, detail); value != "" {
				longer += ", " + value
			}
			list = append(list, separate(longer, part, details[i+1:])...)
		}
		return list
	}
	s := &series{name: name, now: make(map[int64]float64), before: make(map[int64]float64)}
	for _, each := range figures { // of repetitions the last
		if each.before {
			s.before[each.size] = each.value
		} else {
			s.now[each.size] = each.value
		}
	}
	return []*series{s}
}

// split puts figures into groups of the same key, in the order of the first of each.
func split(figures []sized, key func(*sized) string) [][]sized {
	var order []string
	groups := make(map[string][]sized)
	for i := range figures {
		k := key(&figures[i])
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], figures[i])
	}
	list := make([][]sized, len(order))
	for i, k := range order {
		list[i] = groups[k]
	}
	return list
}

// collide reports whether two figures that are no repetitions of each other have the same size.
func collide(figures []sized) bool {
	type spot struct {
		size   int64
		before bool
	}
	seen := make(map[spot][]record.Fact)
	for i := range figures {
		at := spot{figures[i].size, figures[i].before}
		if other, taken := seen[at]; taken && !slices.Equal(other, figures[i].details) {
			return true
		}
		seen[at] = figures[i].details
	}
	return false
}

func valueOf(details []record.Fact, name string) string {
	for _, each := range details {
		if each.Name == name {
			return each.Value
		}
	}
	return ""
}

// charts are those of series with more than one size.
func (s *sizes) charts() []chart {
	var charts []chart
	for _, each := range []struct {
		title   string
		figures []sized
		limits  []sizeLimit
		up      func(b bounds) plot.Axis
	}{
		{"Bandwidth by message size", s.bandwidth, s.leastBandwidth, func(b bounds) plot.Axis {
			y := upwards(b)
			y.Label, y.Exact = "Gbit/s", func(value float64) string { return plot.Number(value) + " Gbit/s" }
			return y
		}},
		{
			"Latency p50 by message size", s.latency, s.maxLatency,
			func(b bounds) plot.Axis { return times(upwards(b)) },
		},
	} {
		a := newAlbum()
		measured := make(map[int64]bool) // sizes
		for _, curve := range seriesOf(each.figures) {
			if len(curve.now) < 2 {
				continue
			}
			for _, points := range bySize(curve.now, measured) {
				a.add(plot.Curve{Name: curve.name, Points: points, Dots: true})
			}
			if len(curve.before) < 2 {
				continue
			}
			for _, points := range bySize(curve.before, measured) {
				a.add(plot.Curve{Name: curve.name, Points: points, Dashed: true})
			}
		}
		for _, limit := range each.limits {
			a.limit(plot.Curve{Name: limit.text, Points: broad(limit.points)})
		}
		charts = append(
			charts,
			a.render(each.title, chartHeight, func(b bounds) (x, y plot.Axis) {
				return sizeAxis(b, measured), each.up(b)
			})...,
		)
	}
	return charts
}

// broad makes a line of a single point, which would not be seen.
func broad(points []plot.Point) []plot.Point {
	if len(points) != 1 {
		return points
	}
	left, right := points[0], points[0]
	left.X, right.X = left.X/math.Sqrt2, right.X*math.Sqrt2
	return []plot.Point{left, right}
}

// decades is the ratio of values from which on the lower ones could not be read on a linear axis.
const decades = 10

// upwards is an axis of values from nothing on, or of their magnitudes where these are far apart.
func upwards(b bounds) plot.Axis {
	if b.low > 0 && b.high/b.low > decades {
		return plot.Powers(b.low, b.high, ticksUp+2)
	}
	return plot.FromZero(b.high, ticksUp)
}

// bySize are the points of a curve, in parts between sizes of which nothing was measured; measured has its sizes then.
func bySize(values map[int64]float64, measured map[int64]bool) [][]plot.Point {
	parts := make([][]plot.Point, 1)
	for _, n := range slices.Sorted(maps.Keys(values)) {
		last := &parts[len(parts)-1]
		switch {
		case !math.IsNaN(values[n]):
			*last = append(*last, plot.Point{X: float64(n), Y: values[n]})
			measured[n] = true
		case len(*last) > 0:
			parts = append(parts, nil)
		}
	}
	return parts
}

// sizeAxis has ticks at the sizes that were measured, or at powers of two if those are too many.
func sizeAxis(b bounds, measured map[int64]bool) plot.Axis {
	a := plot.Axis{Label: "message size", Low: b.left, High: b.right, Logarithmic: true}
	a.Print = func(n float64) string { return narrow(size(int64(n))) }
	const most = 8
	if len(measured) <= most {
		for _, n := range slices.Sorted(maps.Keys(measured)) {
			a.Ticks = append(a.Ticks, float64(n))
		}
		return a
	}
	first, last := math.Ceil(math.Log2(b.left)), math.Floor(math.Log2(b.right))
	step := max(1, math.Ceil((last-first)/most))
	for i := first; i <= last; i += step {
		a.Ticks = append(a.Ticks, math.Exp2(i))
	}
	return a
}
