package html

import (
	"fmt"
	"html/template"
	"math"
	"slices"

	"rdmarun/host/output/html/plot"
)

// chart is a picture, with its legend as text of the page. A legend in the picture would cover a curve, and would not
// wrap on a narrow page.
type chart struct {
	Title  string
	Legend []legend
	SVG    template.HTML
	// Says is the picture in words.
	Says string
	// Missing is how many curves are in no picture; it is set in the last one.
	Missing int
}

// legend names a curve by the number of its hue.
type legend struct {
	Hue  int
	Name string
	// Before means that the curve is the baseline's: it is dashed, and has the hue of the run's curve.
	Before bool
	// Limit means that it is a threshold.
	Limit bool
}

// Class is the legend's, for the style.
func (l legend) Class() string {
	switch {
	case l.Limit:
		return "limit"
	case l.Before:
		return "before"
	}
	return fmt.Sprintf("hue-%d", l.Hue)
}

// The sizes of pictures in pixels, as long as the page has room for them.
const (
	chartWidth  = 460
	chartHeight = 250
	stripHeight = 150
)

// hues bounds the curves of a picture.  The style has their colours, which readers with a colour vision deficiency can
// distinguish (Okabe and Ito's palette).
const hues = 6

// About how many ticks fit on the axes.
const (
	ticksAcross = 6
	ticksUp     = 5
)

// album is a chart of any number of curves: when a picture has no hues left, another one with the same axes follows.
type album struct {
	pages [][]plot.Curve
	// numbers are those of the curves by their names; the baseline's curve has the same, and so the same place and hue.
	numbers map[string]int
	// limits are thresholds, which each picture has.
	limits []plot.Curve
	// beyond is how many curves have no picture.
	beyond int
	bounds bounds
}

// bounds are those of what all curves show.
type bounds struct{ left, right, low, high float64 }

// maxLimits is how many thresholds a picture has: more of them would hide the curves.
const maxLimits = 8

// maxPages is how many pictures of one kind a reader will look through; the table has the rest.
const maxPages = 20

func newAlbum() *album {
	return &album{numbers: make(map[string]int), bounds: bounds{math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)}}
}

// add draws a curve; the album chooses its hue.
func (a *album) add(curve plot.Curve) {
	if len(curve.Points) == 0 {
		return
	}
	number, known := a.numbers[curve.Name]
	if !known {
		number = len(a.numbers)
		a.numbers[curve.Name] = number
	}
	page := number / hues
	if page >= maxPages {
		if !known {
			a.beyond++
		}
		return
	}
	for page >= len(a.pages) {
		a.pages = append(a.pages, nil)
	}
	curve.Hue = number % hues
	a.pages[page] = append(a.pages[page], curve)
	a.bounds.include(curve.Points)
}

// include widens the bounds, so that they show points.
func (b *bounds) include(points []plot.Point) {
	for _, each := range points {
		b.left, b.right = min(b.left, each.X), max(b.right, each.X)
		b.low, b.high = min(b.low, each.Y), max(b.high, each.Y)
	}
}

// limit draws a threshold in each picture.
func (a *album) limit(curve plot.Curve) {
	if len(a.pages) == 0 || len(a.limits) == maxLimits {
		return
	}
	curve.Limit = true
	a.limits = append(a.limits, curve)
	a.bounds.include(curve.Points)
}

// level draws a threshold of one value, unless there is one.
func (a *album) level(name string, value float64) {
	points := []plot.Point{{X: a.bounds.left, Y: value}, {X: a.bounds.right, Y: value}}
	if !slices.ContainsFunc(a.limits, func(c plot.Curve) bool { return slices.Equal(c.Points, points) }) {
		a.limit(plot.Curve{Name: name, Points: points, Level: true})
	}
}

// render draws the pictures; axes makes the same axes for all of them, so that they can be compared.
func (a *album) render(title string, height float64, axes func(bounds) (x, y plot.Axis)) []chart {
	var charts []chart
	for i, curves := range a.pages {
		curves = append(slices.Clone(curves), a.limits...)
		p := plot.Plot{Width: chartWidth, Height: height, Curves: curves}
		p.X, p.Y = axes(a.bounds)
		name := title
		if len(a.pages) > 1 {
			name = fmt.Sprintf("%s (%d of %d)", title, i+1, len(a.pages))
		}
		// Text from elsewhere is escaped there.
		charts = append(charts, chart{
			Title: name, Legend: legendOf(curves), SVG: template.HTML(p.SVG()), Says: p.Describe(),
		})
	}
	if a.beyond > 0 {
		charts[len(charts)-1].Missing = a.beyond
	}
	return charts
}

// legendOf names the curves, and explains the dashed ones.
func legendOf(curves []plot.Curve) []legend {
	var list []legend
	before, limits := false, false
	for _, each := range curves {
		if each.Limit {
			limits = true
			continue
		}
		named := legend{Hue: each.Hue, Name: each.Name}
		if before = before || each.Dashed; !each.Dashed && !slices.Contains(list, named) { // a curve with a gap is two
			list = append(list, named)
		}
	}
	if before {
		list = append(list, legend{Name: "baseline", Before: true})
	}
	if limits {
		list = append(list, legend{Name: "threshold", Limit: true})
	}
	return list
}
