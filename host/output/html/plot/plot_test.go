package plot

import (
	"encoding/xml"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// drawn is a chart as a reader of its SVG sees it.
type drawn struct {
	ViewBox string `xml:"viewBox,attr"`
	Axis    path   `xml:"path"`
	Text    []struct {
		Class string  `xml:"class,attr"`
		X     float64 `xml:"x,attr"`
		Y     float64 `xml:"y,attr"`
		Text  string  `xml:",chardata"`
	} `xml:"text"`
	Group []struct {
		Path     []path `xml:"path"`
		Class    string `xml:"class,attr"`
		Name     string `xml:"data-name,attr"`
		X        string `xml:"data-x,attr"`
		Y        string `xml:"data-y,attr"`
		Polyline struct {
			Points string `xml:"points,attr"`
		} `xml:"polyline"`
		Polygon *struct{} `xml:"polygon"`
		Circle  []struct {
			X float64 `xml:"cx,attr"`
			Y float64 `xml:"cy,attr"`
		} `xml:"circle"`
	} `xml:"g"`
	Rect []struct {
		X       float64 `xml:"x,attr"`
		Y       float64 `xml:"y,attr"`
		Width   float64 `xml:"width,attr"`
		Height  float64 `xml:"height,attr"`
		Opacity float64 `xml:"fill-opacity,attr"`
		Title   string  `xml:"title"`
	} `xml:"rect"`
	grid []path
}

type path struct {
	D string `xml:"d,attr"`
}

func draw(t *testing.T, p *Plot) *drawn {
	t.Helper()
	var d drawn
	if err := xml.Unmarshal([]byte(p.SVG()), &d); err != nil {
		t.Fatal(err)
	}
	d.grid, d.Group = d.Group[0].Path, d.Group[1:]
	return &d
}

func numbers(t *testing.T, text string) (list []float64) {
	t.Helper()
	for _, each := range strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(" ,MVH", c) }) {
		n, err := strconv.ParseFloat(each, 64)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, n)
	}
	return list
}

// back is the value of an axis for a place, by where two ticks are drawn: what a reader does with a ruler.
func back(a *Axis, first, last, at float64) float64 {
	low, high := a.Ticks[0], a.Ticks[len(a.Ticks)-1]
	if a.Logarithmic {
		return math.Exp(math.Log(low) + (at-first)/(last-first)*(math.Log(high)-math.Log(low)))
	}
	return low + (at-first)/(last-first)*(high-low)
}

// TestPointsAreWhereTheTicksSay reads each point of random curves off the picture.
func TestPointsAreWhereTheTicksSay(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for round := range 200 {
		size := math.Pow(10, float64(random.IntN(12)-4))
		points := []Point{{X: 1 + random.Float64(), Y: size * (1 + random.Float64())}}
		for range random.IntN(50) + 1 {
			last := points[len(points)-1]
			points = append(points, Point{X: last.X * (1 + random.Float64()/2), Y: size * (0.2 + 9*random.Float64())})
		}
		right, low, high := points[len(points)-1].X, points[0].Y, points[0].Y
		for _, each := range points {
			low, high = min(low, each.Y), max(high, each.Y)
		}
		p := Plot{
			Width: 460, Height: 250, X: Powers(points[0].X, right, 7), Y: FromZero(high, 5),
			Curves: []Curve{{Name: "curve", Points: points, Dots: true}},
		}
		if round%2 == 1 {
			p.X, p.Y = Even(0, right, 6), Powers(low, high, 6)
		}
		if len(p.X.Ticks) < 2 || len(p.Y.Ticks) < 2 {
			t.Fatalf("round %d: ticks %v and %v", round, p.X.Ticks, p.Y.Ticks)
		}
		d := draw(t, &p)
		axis := numbers(t, d.Axis.D) // left top bottom right
		left, top, bottom, rightmost := axis[0], axis[1], axis[2], axis[3]
		firstX, lastX := numbers(t, d.grid[0].D)[0], numbers(t, d.grid[len(p.X.Ticks)-1].D)[0]
		firstY, lastY := numbers(t, d.grid[len(p.X.Ticks)].D)[1], numbers(t, d.grid[len(d.grid)-1].D)[1]
		at := numbers(t, d.Group[0].Polyline.Points)
		if len(at) != 2*len(points) || len(d.Group[0].Circle) != len(points) ||
			len(d.grid) != len(p.X.Ticks)+len(p.Y.Ticks) {
			t.Fatalf(
				"round %d: %d numbers and %d dots of %d points", round, len(at), len(d.Group[0].Circle), len(points),
			)
		}
		for i, each := range points {
			x, y := at[2*i], at[2*i+1]
			if x < left || x > rightmost || y < top || y > bottom || d.Group[0].Circle[i].X != x ||
				d.Group[0].Circle[i].Y != y {
				t.Fatalf(
					"round %d: point %d is at %v,%v, and its dot at %v; the frame is %v", round, i, x, y,
					d.Group[0].Circle[i], axis,
				)
			}
			// The values one unit of the picture to both sides: the point's is in between.
			for _, axis := range []struct {
				axis        *Axis
				first, last float64
				at, value   float64
			}{{&p.X, firstX, lastX, x, each.X}, {&p.Y, firstY, lastY, y, each.Y}} {
				one, other := back(axis.axis, axis.first, axis.last, axis.at-0.5),
					back(axis.axis, axis.first, axis.last, axis.at+0.5)
				if axis.value < min(one, other) || axis.value > max(one, other) {
					t.Fatalf(
						"round %d: point %d has %v, and is drawn between %v and %v", round, i, axis.value, one, other,
					)
				}
			}
		}
	}
}

func TestTicks(t *testing.T) {
	for _, test := range []struct {
		axis      Axis
		low, high float64
		ticks     string
	}{
		{FromZero(64, 5), 0, 80, "0 20 40 60 80"},
		{FromZero(80, 5), 0, 80, "0 20 40 60 80"},
		{FromZero(0.3, 3), 0, 0.3, "0 0.1 0.2 0.3"},
		{FromZero(0, 5), 0, 1, "0 0.2 0.4 0.6 0.8 1"},
		{FromZero(2.5e6, 5), 0, 2.5e6, "0 500k 1M 1.5M 2M 2.5M"},
		{Even(2.4, 64, 6), 2.4, 64, "20 40 60"},
		{Even(0, 1, 6), 0, 1, "0 0.2 0.4 0.6 0.8 1"},
		{Even(5, 5, 6), 5, 10, "5 6 7 8 9 10"},
		{Powers(3, 80, 6), 2, 100, "2 5 10 20 50 100"},
		{Powers(3, 9000, 6), 2, 10000, "10 100 1k 10k"},
		{Powers(0.9, 45000, 6), 0.5, 50000, "1 10 100 1k 10k"},
		{Powers(10, 100, 6), 10, 100, "10 20 50 100"},
		{Powers(1, 1e9, 6), 1, 1e9, "1 100 10k 1M 100M"},
		{Powers(0, 0, 6), 0.001, 0.002, "0.001 0.002"},
	} {
		var texts []string
		for _, each := range test.axis.Ticks {
			texts = append(texts, test.axis.Print(each))
		}
		if got := strings.Join(texts, " "); got != test.ticks ||
			math.Abs(test.axis.Low/test.low-1) > 1e-9 && test.axis.Low != test.low ||
			math.Abs(test.axis.High/test.high-1) > 1e-9 {
			t.Errorf(
				"%v to %v: %s; want %v to %v: %s", test.axis.Low, test.axis.High, got, test.low, test.high, test.ticks,
			)
		}
	}
}

// TestAxesHoldAnything: whatever the bounds, there are few ticks, in order and within.
func TestAxesHoldAnything(t *testing.T) {
	bounds := []float64{0, 1e-300, 1e-9, 0.1, 0.30000000000000004, 1, 1.0000000001, 7, 1e6, 123456789, 1e15, 1e300}
	for _, low := range bounds {
		for _, high := range bounds {
			for name, a := range map[string]Axis{
				"even": Even(low, high, 6), "zero": FromZero(high, 5), "powers": Powers(low, high, 6),
			} {
				if !(a.High > a.Low) || len(a.Ticks) > 12 || !slices.IsSorted(a.Ticks) {
					t.Fatalf("%s from %v to %v: %+v", name, low, high, a)
				}
				for _, each := range a.Ticks {
					if slack := (a.High - a.Low) * 1e-6; each < a.Low-slack || each > a.High+slack {
						t.Errorf("%s from %v to %v has a tick at %v", name, low, high, each)
					}
				}
				for _, value := range []float64{low, high, 0, -1, math.Inf(1)} {
					if at := a.fraction(value); !(at >= 0 && at <= 1) {
						t.Errorf("%s from %v to %v: %v is at %v", name, low, high, value, at)
					}
				}
			}
		}
	}
}

func TestTextsAreKeptApartAndEscaped(t *testing.T) {
	x := Even(0, 10, 10)
	x.Label, x.Print = `<of> & "x"`, func(v float64) string { return fmt.Sprintf("a long <text> %v", v) }
	y := FromZero(1, 5)
	y.Label, y.Exact = "share", func(v float64) string { return Number(100*v) + " %" }
	p := Plot{Width: 460, Height: 250, X: x, Y: y, Curves: []Curve{
		{Name: `"><script>`, Hue: 3, Points: []Point{{X: 0, Y: 0.5, At: "<b>"}, {X: 10, Y: 0.25}}, Filled: true},
		{Name: "was", Points: []Point{{X: 1, Y: 1}}, Dashed: true, Dots: true, Filled: true},
		{Name: "nothing"},
	}}
	d := draw(t, &p)
	if len(d.Group) != 2 {
		t.Fatalf("%d curves", len(d.Group))
	}
	now, was := d.Group[0], d.Group[1]
	if now.Name != `"><script>` || now.Class != "curve hue-3" || now.X != "<b>|a long <text> 10" ||
		now.Y != "50 %|25 %" || now.Polygon == nil {
		t.Errorf("%+v", now)
	}
	if was.Class != "curve hue-0 dashed" || was.Polygon != nil || len(was.Circle) > 0 {
		t.Errorf("%+v", was)
	}
	var ends float64
	shown := 0
	for _, text := range d.Text {
		if text.Class == "x" {
			if half := width(text.Text) / 2; text.X-half < ends || text.X+half > p.Width {
				t.Errorf(
					"%q at %v is on another text, which ends at %v, or beyond the picture", text.Text, text.X, ends,
				)
			} else {
				ends, shown = text.X+half, shown+1
			}
		}
	}
	if shown < 2 {
		t.Errorf("%d texts", shown)
	}
	if want := `"><script> from 25 % to 50 %; was of the baseline from 100 % to 100 %`; p.Describe() != want {
		t.Errorf("it is described as %s", p.Describe())
	}
}

// TestCells: each is between the places of its ends, is as dark as its value, and has its text.
func TestCells(t *testing.T) {
	p := Plot{Width: 400, Height: 200, X: Even(0, 2, 2), Y: Even(0, 10, 5), Cells: []Cell{
		{Left: 0, Right: 1, Low: 0, High: 5, Dark: 1, Says: "a < b"},
		{Left: 1, Right: 2, Low: 5, High: 10, Dark: 0.256},
		{Left: 0, Right: 1, Low: 5, High: 10},           // nothing is in it
		{Left: 1, Right: 2, Low: 11, High: 12, Dark: 1}, // beyond the axis
	}}
	var found drawn
	if err := xml.Unmarshal([]byte(p.SVG()), &found); err != nil {
		t.Fatal(err)
	}
	if len(found.Rect) != 2 {
		t.Fatalf("%+v", found.Rect)
	}
	f := p.frame()
	low, high := found.Rect[0], found.Rect[1]
	near := func(a, b float64) bool { return math.Abs(a-b) < 0.2 }
	middle, across := (f.top+f.bottom)/2, (f.left+f.right)/2
	if !near(low.X, f.left) || !near(low.X+low.Width, across) || !near(low.Y, middle) ||
		!near(low.Y+low.Height, f.bottom) || low.Opacity != 1 || low.Title != "a < b" {
		t.Errorf("%+v in %+v", low, f)
	}
	if !near(high.X, across) || !near(high.X+high.Width, f.right) || !near(high.Y, f.top) ||
		!near(high.Y+high.Height, middle) || high.Opacity != 0.26 {
		t.Errorf("%+v in %+v", high, f)
	}
}
