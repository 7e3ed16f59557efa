package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// mark is what the ratio of all steps together may be.
const mark = 1.05

// row is a line of the table: one step, or several that only together are the same for both programs.
type row struct {
	title string
	steps []string
}

// rows are the lines of the table.  cmtime destroys its queue pairs while it waits for the end of the connections, a
// measure step together with the ids.
func rows() []row {
	var list []row
	for _, step := range steps[:5] {
		list = append(list, row{strings.ReplaceAll(step, "_", " "), []string{step}})
	}
	return append(list, row{"disconnect, destroy", steps[5:]}, row{"all steps", steps})
}

func (t times) sum(steps []string) time.Duration {
	var sum time.Duration
	for _, step := range steps {
		sum += t[step]
	}
	return sum
}

// figures are the medians of one row: microseconds a connection, and the ratio of rdmarun's to cmtime's within a
// round. A disturbance of the machine affects neighbours alike.
type figures struct{ theirs, ours, ratio float64 }

func (r row) figures(rounds []round) figures {
	var theirs, ours, ratios []float64
	for _, each := range rounds {
		a, b := each.theirs.sum(r.steps), each.ours.sum(r.steps)
		perConnection := float64(time.Microsecond) * float64(each.connections)
		theirs, ours = append(theirs, float64(a)/perConnection), append(ours, float64(b)/perConnection)
		ratios = append(ratios, float64(b)/float64(a))
	}
	return figures{median(theirs), median(ours), median(ratios)}
}

// printTable prints every step and reports whether the last row, of all, reaches the mark.
func printTable(w io.Writer, rounds []round) (reached bool) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "STEP\tCMTIME\tRDMARUN\tRATIO\tMUST BE\t")
	for _, r := range rows() {
		f := r.figures(rounds)
		fmt.Fprintf(table, "%s\t%.1f\t%.1f\t%.2f x", r.title, f.theirs, f.ours, f.ratio)
		if len(r.steps) == len(steps) {
			reached = f.ratio <= mark
			fmt.Fprintf(table, "\t<= %.2f x\t%s", mark, map[bool]string{true: "ok", false: "MISSED"}[reached])
		}
		fmt.Fprintln(table)
	}
	table.Flush()
	return reached
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
