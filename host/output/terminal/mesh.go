package terminal

import (
	"cmp"
	"fmt"
	"unicode/utf8"

	"rdmarun/host/record"
	"rdmarun/host/scenario/quantity"
)

// shownBad is how many of the bad pairs of a mesh are shown.
const shownBad = 10

// mesh prints what a mesh has found: a line for the whole, the worst of the bad pairs, and what explains all of them.
func (h *Human) mesh(found *record.Mesh) {
	units := h.options.Units
	size := ""
	if found.Size > 0 {
		size = ", " + units.Bytes(found.Size)
	}
	median, worst := found.Spread()
	h.fold(8, "      %s%s: %s of %s in %s, best %s, median %.0f %% of it, worst %.0f %%, %s%s", found.Name, size,
		quantity.Count(
			len(found.Pairs), "pair",
		),
		quantity.Count(len(found.Nodes), "node"), quantity.Count(found.Rounds, "round"),
		MeshFigure(found.Type, found.Best, units),
		100*median, 100*worst,
		quantity.Count(found.Outliers, "outlier"), lostText(found))
	bad := found.Bad()
	if len(bad) == 0 {
		return
	}
	table := measureTable{
		kind: "worst pairs", rows: [][]string{{"worst pairs", "first look", "second look", "of the best"}},
	}
	named := found.Named()
	for _, pair := range bad[:min(len(bad), shownBad)] {
		table.rows = append(
			table.rows, append([]string{named(pair.From) + " - " + named(pair.To)}, meshLooks(found, pair, units)...),
		)
	}
	width := h.style.Width - len("      ")
	table.fit(width)
	if width > 0 && utf8.RuneCountInString(table.lines()[0]) > width { // the second look is what counts
		for i, row := range table.rows {
			table.rows[i] = append(row[:1:1], cmp.Or(row[2], row[1]), row[3])
		}
	}
	for i, line := range table.lines() {
		if i == 0 {
			line = h.style.dim(line)
		}
		h.print("      %s\n", line)
	}
	if more := len(bad) - shownBad; more > 0 {
		h.print("      %s\n", h.style.dim(fmt.Sprintf("and %d more", more)))
	}
	h.lost(bad)
	if found.Blame != nil {
		h.fold(8, "      %s", h.style.bad(found.Blame.Text))
	}
}

// shownReasons is how many of the reasons for which pairs are lost are shown.
const shownReasons = 3

// lost writes why pairs are lost: often the reason is the same for many, such as a host that is gone.
func (h *Human) lost(bad []*record.MeshPair) {
	var reasons []string
	count := make(map[string]int)
	for _, pair := range bad {
		if pair.Lost == "" {
			continue
		}
		if count[pair.Lost]++; count[pair.Lost] == 1 {
			reasons = append(reasons, pair.Lost)
		}
	}
	for i, reason := range reasons {
		if i == shownReasons {
			h.print("      %s\n", h.style.dim(fmt.Sprintf("and %d more reasons", len(reasons)-i)))
			return
		}
		h.fold(8, "      %s", h.style.bad(fmt.Sprintf("%s lost: %s", quantity.Count(count[reason], "pair"), reason)))
	}
}

func lostText(found *record.Mesh) string {
	if found.Lost == 0 {
		return ""
	}
	return fmt.Sprintf(", %d lost", found.Lost)
}

// meshLooks are the figures of a bad pair.
func meshLooks(found *record.Mesh, pair *record.MeshPair, units Units) []string {
	if pair.First == nil {
		return []string{"lost", "", ""}
	}
	again := ""
	if pair.Again != nil {
		again = MeshFigure(found.Type, pair.Again.Figure(found.Type), units)
	}
	return []string{
		MeshFigure(found.Type, pair.First.Figure(found.Type), units), again, fmt.Sprintf("%.0f %%", 100*pair.OfBest),
	}
}

// MeshFigure is what a pair is judged by, with its unit.
func MeshFigure(kind string, figure float64, units Units) string {
	switch kind {
	case record.BandwidthType:
		return BitRate(figure)
	case record.LatencyType:
		return units.nanoseconds(int64(figure))
	}
	return PerSecond(figure) + "/s"
}
