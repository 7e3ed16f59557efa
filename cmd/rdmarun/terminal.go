package main

import (
	"bytes"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"rdmarun/host/output/terminal"
	"rdmarun/host/printable"
)

// table lines up cells that are written with tabs between them, as text/tabwriter does.  On a terminal it also keeps the
// lines within it: what a last column has too much goes on below it, and
// where it has no room at all it stands below the others.
type table struct {
	bytes.Buffer
	out   io.Writer
	width int
}

// newTable writes to out, by the width of its terminal.
func newTable(out io.Writer) *table { return &table{out: out, width: terminalWidth(out)} }

// leastColumn is how wide the last column has to be for text to be read in it.
const leastColumn = 28

// Flush writes the table.
func (t *table) Flush() error {
	text := printable.Text(t.String()) // names can have anything in them
	if t.width <= 0 {
		lines := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
		if _, err := io.WriteString(lines, text); err != nil {
			return err
		}
		return lines.Flush()
	}
	var b strings.Builder
	var block [][]string
	end := func() {
		t.block(&b, block)
		block = nil
	}
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(cells) == 1 { // it ends the columns above
			end()
			t.folded(&b, cells[0], 2)
			continue
		}
		block = append(block, cells)
	}
	end()
	_, err := io.WriteString(t.out, b.String())
	return err
}

func (t *table) block(b *strings.Builder, rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row[:len(row)-1] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	column, widest := 0, 0
	for _, width := range widths {
		column += width + 2
	}
	for _, row := range rows {
		widest = max(widest, utf8.RuneCountInString(row[len(row)-1]))
	}
	stacked := column+widest > t.width && column+leastColumn > t.width
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row[:len(row)-1] {
			line.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
		}
		last := row[len(row)-1]
		if !stacked {
			t.folded(b, strings.TrimRight(line.String()+last, " "), column)
			continue
		}
		// No room beside the other columns: below them.
		t.folded(b, strings.TrimRight(line.String(), " "), 4)
		if indent := len(row[0]) - len(strings.TrimLeft(row[0], " ")) + 4; last != "" {
			t.folded(b, strings.Repeat(" ", indent)+last, indent)
		}
	}
}

// folded writes a line, broken between words.
func (t *table) folded(b *strings.Builder, line string, hang int) {
	b.WriteString(terminal.Style{Width: t.width}.Fold(line, hang) + "\n")
}
