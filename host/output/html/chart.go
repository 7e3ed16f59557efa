package html

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// chart is a picture, with what its curves are called in words of the page: a legend in the picture would lie on a
// curve, and not wrap on a narrow page.
type chart struct {
	Title  string
	Legend []legend
	SVG    template.HTML
	// Missing is how many curves have no picture; this is the last one.
	Missing int
}

// legend names a curve by the number of its hue.
type legend struct {
	Hue  int
	Name string
	// Before tells that the curve is the baseline's, which is dashed; its hue is that of the run's curve.
	Before bool
}

const (
	chartWidth  = 345 * vg.Length(1)
	chartHeight = 190 * vg.Length(1)
	stripHeight = 110 * vg.Length(1)
)

// hues keep their distance for readers who see few colours (Okabe and Ito's palette); the style has the same.
var hues = []color.Color{
	color.RGBA{0x00, 0x72, 0xb2, 0xff}, color.RGBA{0xd5, 0x5e, 0x00, 0xff}, color.RGBA{0x00, 0x9e, 0x73, 0xff},
	color.RGBA{0xcc, 0x79, 0xa7, 0xff}, color.RGBA{0xe6, 0x9f, 0x00, 0xff}, color.RGBA{0x56, 0xb4, 0xe9, 0xff},
}

// canvas is a picture that curves are added to, as many as there are hues.
type canvas struct {
	plot   *plot.Plot
	legend []legend
	before bool // some curve is the baseline's
}

func newCanvas(x, y string) *canvas {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = x, y
	for _, style := range []*draw.TextStyle{&p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label} {
		style.Font.Variant, style.Font.Size = "Sans", vg.Points(8)
	}
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.Gray{0xdd}, color.Gray{0xdd}
	p.Add(grid)
	return &canvas{plot: p}
}

// add draws a curve in one of the hues.
func (c *canvas) add(name string, number int, points plotter.XYs, dots, before bool) error {
	line, scatter, err := plotter.NewLinePoints(points)
	if err != nil {
		return fmt.Errorf("chart of %s: %w", name, err)
	}
	line.Color, line.Width = hues[number], vg.Points(1.5)
	if before {
		line.Dashes, line.Width = []vg.Length{vg.Points(4), vg.Points(3)}, vg.Points(1)
	}
	c.plot.Add(line)
	if dots && !before {
		scatter.Color, scatter.Radius, scatter.Shape = line.Color, vg.Points(2.2), draw.CircleGlyph{}
		c.plot.Add(scatter)
	}
	if before {
		c.before = true
	} else {
		c.legend = append(c.legend, legend{Hue: number, Name: name})
	}
	return nil
}

// legendLines are the curves, and what else must be said of the picture.
func (c *canvas) legendLines() []legend {
	if c.before {
		return append(c.legend, legend{Hue: plain, Name: "baseline", Before: true})
	}
	return c.legend
}

// plain is the hue of what is no curve: the colour of text.
const plain = -1

// Class is the legend's, for the style.
func (l legend) Class() string {
	if l.Hue == plain {
		return "before"
	}
	return fmt.Sprintf("hue-%d", l.Hue)
}

// logarithmic makes an axis show times that lie orders of magnitude apart.
func logarithmic(axis *plot.Axis) {
	axis.Scale, axis.Tick.Marker = plot.LogScale{}, decades{}
}

// decades are the ticks of a logarithmic axis.
type decades struct{}

// Ticks implements plot.Ticker.
func (decades) Ticks(lowest, highest float64) []plot.Tick {
	var ticks []plot.Tick
	for exponent := math.Floor(math.Log10(lowest)); exponent <= math.Ceil(math.Log10(highest)); exponent++ {
		value := math.Pow(10, exponent)
		ticks = append(ticks, plot.Tick{Value: value, Label: strconv.FormatFloat(value, 'g', -1, 64)})
	}
	return slices.DeleteFunc(ticks, func(t plot.Tick) bool { return t.Value < lowest || t.Value > highest })
}

func (c *canvas) render(title string, height vg.Length) (chart, error) {
	canvas := vgsvg.New(chartWidth, height)
	c.plot.BackgroundColor = color.Transparent
	// The last label of an axis is as wide to the right of its tick as to the left.
	c.plot.Draw(draw.Crop(draw.New(canvas), 0, -vg.Points(14), 0, -vg.Points(4)))
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return chart{}, fmt.Errorf("chart %s: %w", title, err)
	}
	// What stands before <svg> belongs to a file, not to a part of a page.  The text in it was escaped
	// by the canvas.
	svg := out.Bytes()
	if i := bytes.Index(svg, []byte("<svg")); i > 0 {
		svg = svg[i:]
	}
	return chart{Title: title, Legend: c.legendLines(), SVG: template.HTML(svg)}, nil
}
