// Package plot draws line charts and heat maps as SVG in a page. Its colours and fonts are classes of the page's
// style, so that it is right in light, in dark and on paper. Each curve has the texts of its points for the page's
// script.
package plot

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Point is a place in a chart.
type Point struct {
	X, Y float64
	// At is the text for X, unless the axis has it.
	At string
}

// Curve is a line through points, from left to right.
type Curve struct {
	Name   string
	Hue    int // the class hue-N of the style
	Points []Point
	// Dots has a dot at each point, Dashed is a broken line, Filled has a shade below the line.
	Dots, Dashed, Filled bool
	// Level means that a point's value holds until the next one.
	Level bool
	// Limit means that the curve is what others are compared with, and has no hue.
	Limit bool
}

// Cell is a rectangle of a chart, the darker the more of something is in it.
type Cell struct {
	Left, Right, Low, High float64
	Dark                   float64 // from 0, which is not drawn, to 1
	Says                   string  // for a reader who points at it
}

// Plot is a chart.
type Plot struct {
	Width, Height float64
	X, Y          Axis
	Cells         []Cell // below the curves
	Curves        []Curve
}

// The sizes of what is around the curves, in the units of the chart.
const (
	letter  = 6.7 // the width of a letter of 11 units, in the widest of the style's fonts
	line    = 16.0
	between = 8.0
)

// frame is where the curves are.
type frame struct{ left, top, right, bottom float64 }

func width(text string) float64 { return letter * float64(utf8.RuneCountInString(text)) }

func (p *Plot) frame() frame {
	f := frame{left: between, top: between, right: p.Width - between, bottom: p.Height - line - between}
	widest := 0.0
	for _, tick := range p.Y.Ticks {
		widest = max(widest, width(p.Y.Print(tick)))
	}
	f.left += widest + between
	if n := len(p.X.Ticks); n > 0 { // half of the last text is to the right of its tick
		f.right -= width(p.X.Print(p.X.Ticks[n-1])) / 2
	}
	if p.X.Label != "" {
		f.bottom -= line
	}
	if p.Y.Label != "" {
		f.top += line
	}
	return f
}

func (p *Plot) x(f frame, value float64) float64 {
	return f.left + p.X.fraction(value)*(f.right-f.left)
}
func (p *Plot) y(f frame, value float64) float64 {
	return f.bottom - p.Y.fraction(value)*(f.bottom-f.top)
}

// SVG is the picture.
func (p *Plot) SVG() string {
	var out strings.Builder
	f := p.frame()
	fmt.Fprintf(
		&out, `<svg viewBox="0 0 %s %s" data-from="%s" data-to="%s">`, coordinate(p.Width), coordinate(p.Height), coordinate(f.top),
		coordinate(f.bottom),
	)
	p.axes(&out, f)
	for i := range p.Cells {
		p.cell(&out, f, &p.Cells[i])
	}
	for i := range p.Curves {
		p.curve(&out, f, &p.Curves[i])
	}
	out.WriteString("</svg>")
	return out.String()
}

func (p *Plot) axes(out *strings.Builder, f frame) {
	out.WriteString(`<g class="grid">`)
	for _, tick := range p.X.Ticks {
		fmt.Fprintf(out, `<path d="M%s %sV%s"/>`, coordinate(p.x(f, tick)), coordinate(f.top), coordinate(f.bottom))
	}
	for _, tick := range p.Y.Ticks {
		fmt.Fprintf(out, `<path d="M%s %sH%s"/>`, coordinate(f.left), coordinate(p.y(f, tick)), coordinate(f.right))
	}
	fmt.Fprintf(
		out, `</g><path class="axis" d="M%s %sV%sH%s"/>`, coordinate(f.left), coordinate(f.top), coordinate(f.bottom), coordinate(f.right),
	)
	free := 0.0 // from where on there is no text yet
	for _, tick := range p.X.Ticks {
		text, at := p.X.Print(tick), p.x(f, tick)
		if half := width(text) / 2; at-half >= free {
			label(out, "x", at, f.bottom+line, text)
			free = at + half + between
		}
	}
	for _, tick := range p.Y.Ticks {
		label(out, "y", f.left-between+2, p.y(f, tick)+4, p.Y.Print(tick))
	}
	if p.X.Label != "" {
		label(out, "x of", (f.left+f.right)/2, f.bottom+2*line, p.X.Label)
	}
	if p.Y.Label != "" {
		label(out, "y of", between/2, f.top-between-3, p.Y.Label)
	}
}

// label is a text of an axis; where it begins or ends is the style's to say.
func label(out *strings.Builder, class string, x, y float64, text string) {
	fmt.Fprintf(out, `<text class="%s" x="%s" y="%s">%s</text>`, class, coordinate(x), coordinate(y), html.EscapeString(text))
}

func (p *Plot) cell(out *strings.Builder, f frame, c *Cell) {
	left, right, top, bottom := p.x(f, c.Left), p.x(f, c.Right), p.y(f, c.High), p.y(f, c.Low)
	if c.Dark <= 0 || right <= left || bottom <= top {
		return
	}
	fmt.Fprintf(out, `<rect class="cell" x="%s" y="%s" width="%s" height="%s" fill-opacity="%s"><title>%s</title></rect>`,
		coordinate(left), coordinate(top), coordinate(right-left), coordinate(bottom-top),
		strconv.FormatFloat(math.Round(c.Dark*100)/100, 'f', -1, 64), html.EscapeString(c.Says))
}

func (p *Plot) curve(out *strings.Builder, f frame, c *Curve) {
	if len(c.Points) == 0 {
		return
	}
	var points, xs, ys strings.Builder
	for i, each := range c.Points {
		if i > 0 {
			points.WriteByte(' ')
			xs.WriteByte('|')
			ys.WriteByte('|')
		}
		points.WriteString(coordinate(p.x(f, each.X)) + "," + coordinate(p.y(f, each.Y)))
		at := each.At
		if at == "" {
			at = p.X.text(each.X)
		}
		xs.WriteString(at)
		ys.WriteString(p.Y.text(each.Y))
	}
	class := fmt.Sprintf("curve hue-%d", c.Hue)
	switch {
	case c.Limit:
		class = "curve limit"
	case c.Dashed:
		class += " dashed"
	}
	fmt.Fprintf(out, `<g class="%s" data-name="%s" data-x="%s" data-y="%s"`, class,
		html.EscapeString(c.Name), html.EscapeString(xs.String()), html.EscapeString(ys.String()))
	if c.Level {
		out.WriteString(` data-level=""`)
	}
	out.WriteByte('>')
	if c.Filled && !c.Dashed {
		first, last := c.Points[0], c.Points[len(c.Points)-1]
		fmt.Fprintf(
			out, `<polygon points="%s,%s %s %s,%s"/>`, coordinate(p.x(f, first.X)), coordinate(f.bottom), &points,
			coordinate(p.x(f, last.X)), coordinate(f.bottom),
		)
	}
	fmt.Fprintf(out, `<polyline points="%s"/>`, &points)
	if c.Dots && !c.Dashed {
		for _, each := range c.Points {
			fmt.Fprintf(out, `<circle cx="%s" cy="%s" r="3"/>`, coordinate(p.x(f, each.X)), coordinate(p.y(f, each.Y)))
		}
	}
	out.WriteString("</g>")
}

// Describe says in words what the curves show, for those who do not see them.  Curves of one name are parts of one.
func (p *Plot) Describe() string {
	type bounds struct{ low, high float64 }
	var names []string
	found := make(map[string]bounds)
	for i := range p.Curves {
		c := &p.Curves[i]
		if len(c.Points) == 0 {
			continue
		}
		name := c.Name
		if c.Dashed {
			name += " of the baseline"
		}
		b, known := found[name]
		if !known {
			names, b = append(names, name), bounds{math.Inf(1), math.Inf(-1)}
		}
		for _, each := range c.Points {
			b.low, b.high = min(b.low, each.Y), max(b.high, each.Y)
		}
		found[name] = b
	}
	words := make([]string, len(names))
	for i, name := range names {
		words[i] = fmt.Sprintf("%s from %s to %s", name, p.Y.text(found[name].low), p.Y.text(found[name].high))
	}
	return strings.Join(words, "; ")
}

// coordinate formats a coordinate: a tenth is too small to be seen.
func coordinate(value float64) string {
	return strconv.FormatFloat(math.Round(value*10)/10, 'f', -1, 64)
}
