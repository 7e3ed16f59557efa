package html

import (
	"fmt"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// album is a chart of any number of curves: where one picture has no more hues, another one follows, with the same axes.
type album struct {
	x, y  string
	pages []*canvas
	// numbers are those of the curves, by their names: the baseline's has the same, and so the same place and hue.
	numbers map[string]int
	// beyond is how many curves have no picture.
	beyond int
}

// mostPages is how many pictures of one kind anybody looks through; the table has what the curves of more would show.
const mostPages = 20

func newAlbum(x, y string) *album { return &album{x: x, y: y, numbers: make(map[string]int)} }

// empty tells that no curve was added.
func (a *album) empty() bool { return len(a.pages) == 0 }

// add draws a curve.
func (a *album) add(name string, points plotter.XYs, dots, before bool) error {
	if len(points) == 0 {
		return nil
	}
	number, known := a.numbers[name]
	if !known {
		number = len(a.numbers)
		a.numbers[name] = number
	}
	page := number / len(hues)
	if page >= mostPages {
		if !known {
			a.beyond++
		}
		return nil
	}
	for page >= len(a.pages) {
		a.pages = append(a.pages, newCanvas(a.x, a.y))
	}
	return a.pages[page].add(name, number%len(hues), points, dots, before)
}

// alike gives all pictures the same axes, so that one can be held against another.
func (a *album) alike() {
	for _, page := range a.pages[1:] {
		first := a.pages[0].plot
		first.X.Min, first.X.Max = min(first.X.Min, page.plot.X.Min), max(first.X.Max, page.plot.X.Max)
		first.Y.Min, first.Y.Max = min(first.Y.Min, page.plot.Y.Min), max(first.Y.Max, page.plot.Y.Max)
	}
	for _, page := range a.pages[1:] {
		first := a.pages[0].plot
		page.plot.X.Min, page.plot.X.Max = first.X.Min, first.X.Max
		page.plot.Y.Min, page.plot.Y.Max = first.Y.Min, first.Y.Max
	}
}

// render draws the pictures; style makes their axes what they are to be.
func (a *album) render(title string, height vg.Length, style func(*canvas)) ([]chart, error) {
	if a.empty() {
		return nil, nil
	}
	a.alike()
	var charts []chart
	for i, page := range a.pages {
		style(page)
		name := title
		if len(a.pages) > 1 {
			name = fmt.Sprintf("%s (%d of %d)", title, i+1, len(a.pages))
		}
		drawn, err := page.render(name, height)
		if err != nil {
			return nil, err
		}
		charts = append(charts, drawn)
	}
	if a.beyond > 0 {
		charts[len(charts)-1].Missing = a.beyond
	}
	return charts, nil
}
