package html

import (
	"cmp"
	"fmt"
	"html"
	"html/template"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"rdmarun/host/output/terminal"
	"rdmarun/host/record"
	"rdmarun/host/scenario/quantity"
)

const (
	// maxDrawn bounds the nodes of a matrix, maxNamed those that it names, and maxBad the bad pairs in the table
	// next to it.
	maxDrawn = 128
	maxNamed = 48
	maxBad   = 50
	// maxLabel is the longest name of a group next to the matrix.
	maxLabel = 32
	// labelGap is between nodes with different labels.
	labelGap = 4
)

// meshView is a mesh as its template reads it.
type meshView struct {
	*record.Mesh
	Title, Says string
	Matrix      template.HTML
	Bad         []badPair
	More        int // bad pairs that are not in the table
	// Recovered is how many pairs were well when they were measured again.
	Recovered int
}

// badPair is a line of the table of bad pairs.
type badPair struct {
	From, To, First, Again, OfBest, Lost string
}

func newMeshView(found *record.Mesh, drawn bool) meshView {
	v := meshView{Mesh: found, Title: found.Name}
	if found.Size > 0 {
		v.Title += ", " + size(found.Size)
	}
	median, worst := found.Spread()
	v.Says = fmt.Sprintf(
		"%s of %s in %s (%s), best %s, median %s of it, worst %s, %s", quantity.Count(len(found.Pairs), "pair"),
		quantity.Count(len(found.Nodes), "node"), quantity.Count(found.Rounds, "round"), found.Pattern,
		figure(found, found.Best), percent(median), percent(worst), quantity.Count(found.Outliers, "outlier"),
	)
	if found.Lost > 0 {
		v.Says += fmt.Sprintf(", %d lost", found.Lost)
	}
	for i := range found.Pairs {
		if found.Pairs[i].Status() == "suspect" {
			v.Recovered++
		}
	}
	bad, named := found.Bad(), found.Named()
	for _, pair := range bad[:min(len(bad), maxBad)] {
		row := badPair{From: named(pair.From), To: named(pair.To), Lost: pair.Lost}
		if pair.First != nil {
			row.First, row.OfBest = figure(found, pair.First.Figure(found.Type)), percent(pair.OfBest)
		}
		if pair.Again != nil {
			row.Again = figure(found, pair.Again.Figure(found.Type))
		}
		v.Bad = append(v.Bad, row)
	}
	v.More = len(bad) - len(v.Bad)
	if drawn && len(found.Nodes) <= maxDrawn {
		says := v.Title + ": " + v.Says
		if found.Blame != nil {
			says += "; " + found.Blame.Text
		}
		v.Matrix = matrix(found, says)
	}
	return v
}

func figure(found *record.Mesh, value float64) string {
	return narrow(terminal.MeshFigure(found.Type, value, terminal.Units{}))
}

func percent(part float64) string { return narrow(fmt.Sprintf("%.0f %%", 100*part)) }

// byLabels are the numbers of the nodes, sorted so that those with the same labels are neighbours.
func byLabels(nodes []record.MeshNode) []int {
	order := make([]int, len(nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(labelText(&nodes[a]), labelText(&nodes[b])) })
	return order
}

// labelText is the labels of a node, "rack r1".
func labelText(node *record.MeshNode) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(node.Labels)) {
		words = append(words, name+" "+node.Labels[name])
	}
	return strings.Join(words, ", ")
}

// nodeTitle is a node with where it is.
func nodeTitle(node *record.MeshNode) string {
	words := []string{node.Role}
	for _, each := range []string{node.Host, node.Device, labelText(node)} {
		if each != "" {
			words = append(words, each)
		}
	}
	return strings.Join(words, ", ")
}

// grid is where nodes are in a matrix.
type grid struct {
	strings.Builder
	found      *record.Mesh
	named      func(role string) string
	cell, edge float64
	place      map[string]float64 // of a role
	end, width float64
	normal     float64 // OfBest of the median pair
	// outliers are the strokes through outliers, lost those through lost pairs: colour alone must not mark these.
	outliers, lost strings.Builder
}

// matrix draws a row for each node that initiates, and a column for each that responds. A pair is darker the farther
// it is below the median. A pair that was measured in one direction alone fills both cells. says describes the picture
// in words.
func matrix(found *record.Mesh, says string) template.HTML {
	g := &grid{
		found: found, named: found.Named(), place: make(map[string]float64), edge: 8,
		cell: math.Round(max(7, min(36, 560/float64(len(found.Nodes))))),
	}
	g.normal, _ = found.Spread()
	g.nodes()
	drawn := make(map[[2]string]bool)
	for i := range found.Pairs {
		drawn[[2]string{found.Pairs[i].From, found.Pairs[i].To}] = true
	}
	for i := range found.Pairs {
		pair := &found.Pairs[i]
		g.pair(pair, g.place[pair.To], g.place[pair.From])
		if !drawn[[2]string{pair.To, pair.From}] {
			g.pair(pair, g.place[pair.From], g.place[pair.To])
		}
	}
	if g.outliers.Len() > 0 {
		fmt.Fprintf(g, `<path class="outlier" d="%s"/>`, &g.outliers)
	}
	if g.lost.Len() > 0 {
		fmt.Fprintf(g, `<path class="lost" d="%s"/>`, &g.lost)
	}
	return template.HTML(fmt.Sprintf(`<svg viewBox="0 0 %g %g" width="%g" height="%g" role="img" aria-label="%s">%s</svg>`,
		g.width, g.end, g.width, g.end, html.EscapeString(says), g.String()))
}

// nodes places the nodes, and names them where there is room.
func (g *grid) nodes() {
	named := len(g.found.Nodes) <= maxNamed
	if named {
		longest := 0
		for _, node := range g.found.Nodes {
			longest = max(longest, len([]rune(g.named(node.Role))))
		}
		g.edge = 12 + 6.2*float64(longest)
	}
	at, before := g.edge, -1
	var groups []labelled
	for _, n := range byLabels(g.found.Nodes) {
		node := &g.found.Nodes[n]
		if before >= 0 && labelText(node) != labelText(&g.found.Nodes[before]) {
			at += labelGap
		}
		if before < 0 || labelText(node) != labelText(&g.found.Nodes[before]) {
			groups = append(groups, labelled{labelText(node), at, at})
		}
		before, g.place[node.Role] = n, at
		groups[len(groups)-1].end = at + g.cell
		if named {
			name, title, middle := html.EscapeString(g.named(node.Role)), html.EscapeString(nodeTitle(node)),
				at+g.cell/2+4
			fmt.Fprintf(g, `<text class="y" x="%g" y="%g"><title>%s</title>%s</text>`, g.edge-5, middle, title, name)
			fmt.Fprintf(
				g, `<text transform="translate(%g %g) rotate(-90)"><title>%s</title>%s</text>`, middle, g.edge-5, title,
				name,
			)
		}
		at += g.cell
	}
	g.end = at + 4
	g.labels(groups)
}

// labelled are the nodes with the same labels, from where they begin to where they end.
type labelled struct {
	text       string
	begin, end float64
}

// labels names the groups next to the matrix, where there are several.
func (g *grid) labels(groups []labelled) {
	g.width = g.end
	if len(groups) < 2 {
		return
	}
	for _, each := range groups {
		text := []rune(each.text)
		if len(text) > maxLabel {
			text = append(text[:maxLabel-1], '…')
		}
		if len(text) == 0 || each.end-each.begin < 9 {
			continue // no room for it
		}
		fmt.Fprintf(g, `<text x="%g" y="%g">%s<title>%s</title></text>`, g.end+4, (each.begin+each.end)/2+4,
			html.EscapeString(string(text)),
			html.EscapeString(each.text))
		g.width = max(g.width, math.Round(g.end+8+6.2*float64(len(text))))
	}
}

// pair draws a pair in one place; what hovers over it reads its figures.
func (g *grid) pair(pair *record.MeshPair, x, y float64) {
	fmt.Fprintf(g, `<rect class="%s" x="%g" y="%g" width="%g" height="%g" fill-opacity="%g"><title>%s</title></rect>`,
		pair.Status(), x, y, g.cell-1, g.cell-1, g.darkness(pair), html.EscapeString(g.title(pair)))
	line := g.cell - 5
	switch {
	case pair.Lost != "":
		fmt.Fprintf(&g.lost, "M%g %gl%g %gm0 %gl%g %g", x+2, y+2, line, line, -line, -line, line)
	case pair.Outlier:
		fmt.Fprintf(&g.outliers, "M%g %gl%g %g", x+2, y+2+line, line, -line)
	}
}

// darkness is from 0.1, of a pair that is as good as the median or better, to 1, in steps of 0.05.
func (g *grid) darkness(pair *record.MeshPair) float64 {
	below := 0.0
	if g.normal > 0 {
		below = min(max(1-pair.OfBest/g.normal, 0), 1)
	}
	return math.Round(20*(0.1+0.9*below)) / 20
}

func (g *grid) title(pair *record.MeshPair) string {
	title := g.named(pair.From) + " → " + g.named(pair.To) + ": "
	if pair.Lost != "" {
		return title + "lost: " + pair.Lost
	}
	kind, last := g.found.Type, pair.Last()
	title += figure(g.found, last.Figure(kind)) + ", " + percent(pair.OfBest) + " of the best"
	if pair.Again != nil {
		title += "; at first " + figure(g.found, pair.First.Figure(kind))
	}
	if last.Latency != nil {
		title += fmt.Sprintf(
			"; p99 %s, max %s", duration(time.Duration(last.Latency.P99)), duration(time.Duration(last.Latency.Max)),
		)
	}
	return fmt.Sprintf("%s; round %d", title, pair.Round)
}
