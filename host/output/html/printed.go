package html

import (
	"cmp"
	"slices"
	"time"

	"rdmarun/host/output/cases"
	"rdmarun/host/record"
	"rdmarun/host/scenario/quantity"
)

// printed are lines that roles printed, in the order of their times.  A timeline takes them into the lanes of the
// roles, between the steps.  The others are shown below it.
type printed struct {
	Rest []cases.Line
	// Dropped is how many others the case had; "" for none.
	Dropped string
	lines   []cases.Line
	next    int
}

// newPrinted sorts the lines of a case.  Without a timeline none goes into a lane.
func newPrinted(c *cases.Case, t *timeline) *printed {
	p := &printed{}
	if dropped := c.Lines.Dropped(); dropped > 0 {
		p.Dropped = quantity.Count(dropped, "more line")
	}
	for _, line := range c.Lines.All() {
		if t != nil && line.Role != "" && t.lane(line.Role) > 0 {
			p.lines = append(p.lines, line)
		} else {
			p.Rest = append(p.Rest, line)
		}
	}
	slices.SortStableFunc(p.lines, func(a, b cases.Line) int { return cmp.Compare(a.At, b.At) })
	return p
}

// before takes the lines that were printed before a time.
func (p *printed) before(end time.Duration) (lines []cases.Line) {
	first := p.next
	for p.next < len(p.lines) && p.lines[p.next].At < end {
		p.next++
	}
	return p.lines[first:p.next]
}

// print adds a row for the lines that a role printed one after the other, before a step that began at that time.
func (t *timeline) print(p *printed, before time.Duration, end *time.Duration) {
	for lines := p.before(before); len(lines) > 0; {
		role, count := lines[0].Role, 1
		for count < len(lines) && lines[count].Role == role && lines[count].At-lines[count-1].At <= longGap {
			count++
		}
		number := t.lane(role)
		row := ladderRow{
			Lane: number, Host: t.Lanes[number-1].Host, Role: laneName(role), At: clock(lines[0].At),
		}
		for _, line := range lines[:count] {
			row.Lines = append(row.Lines, line.Text)
		}
		t.Rows = append(t.Rows, row)
		*end = max(*end, lines[count-1].At)
		lines = lines[count:]
	}
}

// ifOnOneClock is the timeline if the times of its steps are on the clock of the lines, otherwise nil.
func (t *timeline) ifOnOneClock(steps []record.Step) *timeline {
	if slices.ContainsFunc(steps, func(step record.Step) bool { return step.Clock != nil }) {
		return nil
	}
	return t
}
