package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"rdmarun/host/output/terminal"
	"rdmarun/host/printable"
	"rdmarun/host/record"
)

// choiceFlag is a flag of a few words.
type choiceFlag struct{ formatFlag }

func newColorFlag() *choiceFlag {
	return &choiceFlag{*newFormatFlag("auto", "always", "never")}
}

func (f *choiceFlag) register(command *cobra.Command) {
	command.Flags().Var(f, "color", "colours: auto (on a terminal), always or never")
	complete := cobra.FixedCompletions(f.choices, cobra.ShellCompDirectiveNoFileComp)
	if err := command.RegisterFlagCompletionFunc("color", complete); err != nil {
		panic(err) // the flag was defined a line above
	}
}

// style finds the width of w, and decides about colours on it: the flag first, then NO_COLOR (no-color.org),
// CLICOLOR_FORCE and a terminal that can.
func (f *choiceFlag) style(a *app, w io.Writer) terminal.Style {
	style := terminal.Style{Width: terminalWidth(w)}
	file, ok := w.(*os.File)
	switch {
	case f.value != "auto":
		style.Colour = f.value == "always"
	case a.env["NO_COLOR"] != "":
	case a.env["CLICOLOR_FORCE"] != "" && a.env["CLICOLOR_FORCE"] != "0":
		style.Colour = true
	default:
		style.Colour = ok && a.env["TERM"] != "dumb" && term.IsTerminal(int(file.Fd()))
	}
	return style
}

// terminalWidth is the width of the terminal behind w, 0 when there is none.
func terminalWidth(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// progress shows that a run goes on; nil when it must be quiet.
type progress struct{ *terminal.Progress }

// showProgress begins it and returns what everything else on w is to be written to.  The caller ends it.
func (a *app) showProgress(w io.Writer, quiet bool, style terminal.Style) (shown io.Writer, p progress) {
	if quiet {
		return w, progress{}
	}
	p.Progress = terminal.NewProgress(w, terminal.ProgressOptions{
		Live: a.canRedraw(w), Width: func() int { return terminalWidth(w) }, Style: style,
	})
	a.progress = p.Progress
	return p.Progress, p
}

// aside is standard error for messages while progress may be shown on the same terminal.
func (a *app) aside() io.Writer {
	if a.progress == nil {
		return a.stderr
	}
	return a.progress.Above(a.stderr)
}

// canRedraw reports whether a line on w can be redrawn. This is not so in a file, on a terminal that only prints, and
// in the log of a CI system. Some of the latter pretend to be a terminal.
func (a *app) canRedraw(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && a.env["TERM"] != "dumb" && (a.env["CI"] == "" || a.env["CI"] == "false") &&
		term.IsTerminal(int(file.Fd()))
}

func (p progress) consumer() record.Consumer {
	if p.Progress == nil {
		return nil
	}
	return p.Progress
}

func (p progress) end() {
	if p.Progress != nil {
		p.Close()
	}
}

// table aligns cells that are separated by tabs, as text/tabwriter does. On a terminal it also keeps the lines within
// the width. A last column that is too wide is folded, and with too little room it goes below the others.
type table struct {
	bytes.Buffer
	out   io.Writer
	width int
}

// newTable writes to out, by the width of its terminal.
func newTable(out io.Writer) *table { return &table{out: out, width: terminalWidth(out)} }

// leastColumn is the least width of a readable last column.
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
		// The other columns do not fit: print them below.
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
