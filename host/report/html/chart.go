package html

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// chart is a picture with what it shows in words.
type chart struct {
	Title string
	SVG   template.HTML
}

const (
	chartWidth  = 345 * vg.Length(1)
	chartHeight = 210 * vg.Length(1)
)

// hues keep their distance for readers who see few colours (Okabe and Ito's palette).
var hues = []color.Color{
	color.RGBA{0x00, 0x72, 0xb2, 0xff}, color.RGBA{0xd5, 0x5e, 0x00, 0xff}, color.RGBA{0x00, 0x9e, 0x73, 0xff},
	color.RGBA{0xcc, 0x79, 0xa7, 0xff}, color.RGBA{0xe6, 0x9f, 0x00, 0xff}, color.RGBA{0x56, 0xb4, 0xe9, 0xff},
}

func newPlot(x, y string) *plot.Plot {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = x, y
	for _, style := range []*draw.TextStyle{
		&p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle,
	} {
		style.Font.Variant, style.Font.Size = "Sans", vg.Points(8)
	}
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.Gray{0xdd}, color.Gray{0xdd}
	p.Add(grid)
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.Padding = vg.Points(2)
	return p
}

func addLine(p *plot.Plot, number int, name string, points plotter.XYs, dots bool) error {
	line, scatter, err := plotter.NewLinePoints(points)
	if err != nil {
		return fmt.Errorf("chart of %s: %w", name, err)
	}
	line.Color, line.Width = hues[number%len(hues)], vg.Points(1.5)
	p.Add(line)
	if dots {
		scatter.Color, scatter.Radius, scatter.Shape = line.Color, vg.Points(2.2), draw.CircleGlyph{}
		p.Add(scatter)
	}
	if name != "" {
		p.Legend.Add(name, line)
	}
	return nil
}

func render(title string, p *plot.Plot) (chart, error) {
	canvas := vgsvg.New(chartWidth, chartHeight)
	p.BackgroundColor = color.Transparent
	p.Draw(draw.New(canvas))
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
	return chart{title, template.HTML(svg)}, nil
}
