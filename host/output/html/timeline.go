package html

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"rdmarun/host/output/cases"
	"rdmarun/host/record"
	"rdmarun/host/scenario/quantity"
)

// A timeline is a ladder: a lane for each role from left to right, time from top to bottom, a box for each step. Its
// rows are evenly spaced, because the steps of one case may be a microsecond or a minute apart. If nothing happened
// for long, the time that passed is shown between the rows. If the page is too narrow for the lanes, the style puts
// the boxes below each other, each with its role.
type timeline struct {
	Lanes []lane
	// Earlier are rows long before the first failed step, which the page folds so that this step is in view.
	Earlier []ladderRow
	Rows    []ladderRow
	// Virtual means that the times are on a virtual clock.  Within is the error of the hosts' clocks, "" on one clock.
	Virtual bool
	Within  string
	packets int // that are shown
	// id is what the elements of steps that failed are called, with their numbers; failed is how many there are.
	id     string
	failed int
}

type lane struct {
	Name   string
	Device string
	Host   string
	// Clock is the error of its times compared with those of other hosts.
	Clock string
}

type ladderRow struct {
	// Gap is a text between rows instead of a step.
	Gap string
	// Lane is the number of the step's lane, from 1.
	Lane  int
	Role  string
	Host  string
	At    string
	Text  string
	Sub   string
	Place string
	Bad   bool
	ID    string // of the element, of a step that failed
	Took  string
	// Lines are what the role printed, instead of a step.
	Lines []string
	// Packets are the first that were sent in it, and More is how many others there were.
	Packets []packetRow
	More    int
}

// Count is how many packets were sent in it.
func (r ladderRow) Count() int { return len(r.Packets) + r.More }

// packetRow is a packet, on a line of its own below the step.
type packetRow struct {
	At, From, To, Name, Numbers, FaultResult string
}

const (
	// longGap is the time without a step that is worth a line.
	longGap = 5 * time.Millisecond
	noRole  = "runner"
	// maxText bounds a step and its outcome: a timeline does not show the bytes of a buffer.
	maxText = 240
	// maxPackets is how many packets a timeline shows.
	maxPackets = 400
	// shownBefore is how many rows before the first failed step are not folded. Fewer than that are never folded.
	shownBefore = 8
	// maxLanes is how many fit side by side on the widest page.
	maxLanes = 6
)

// newTimeline makes the timeline of a case, nil without steps, and returns the lines that are not in it.
func newTimeline(c *cases.Case) (*timeline, *printed) {
	var steps []record.Step
	for _, part := range passages(c) {
		steps = append(steps, part.Steps...)
	}
	if len(steps) == 0 {
		return nil, newPrinted(c, nil)
	}
	t := &timeline{id: fmt.Sprintf("case-%d-failed", c.Order)}
	t.lanes(c, steps)
	lines := newPrinted(c, t.ifOnOneClock(steps))
	var end time.Duration
	next := 0 // number of the step that comes next
	for _, part := range passages(c) {
		if n := part.Begin - next; n > 0 {
			t.Rows = append(t.Rows, ladderRow{Gap: quantity.Count(n, "more step")})
			end = part.Steps[0].OnClock().At
		}
		for i := range part.Steps {
			t.print(lines, part.Steps[i].OnClock().At, &end)
			t.step(c, &part.Steps[i], &end)
		}
		next = part.Begin + len(part.Steps)
	}
	t.print(lines, math.MaxInt64, &end)
	t.fold()
	return t, lines
}

// fold takes the rows apart that are long before the first failed step.
func (t *timeline) fold() {
	bad := slices.IndexFunc(t.Rows, func(row ladderRow) bool { return row.ID != "" })
	if first := bad - shownBefore; first >= shownBefore {
		t.Earlier, t.Rows = t.Rows[:first], t.Rows[first:]
	}
}

// EarlierSteps is how many steps are folded.
func (t *timeline) EarlierSteps() string {
	steps := 0
	for i := range t.Earlier {
		if t.Earlier[i].Gap == "" && t.Earlier[i].Lines == nil {
			steps++
		}
	}
	return quantity.Count(steps, "earlier step")
}

// passages are the steps that are kept, in their order, each once: the first, those before each failure, the last.
func passages(c *cases.Case) []cases.Passage {
	head, last := c.Steps.Head(), c.Steps.Last()
	all := append([]cases.Passage{{Steps: head}}, c.Around...)
	all = append(all, cases.Passage{Begin: len(head) + c.Steps.Dropped(), Steps: last})
	var list []cases.Passage
	next := 0
	for i, each := range all {
		end := each.Begin + len(each.Steps)
		if i < len(all)-1 {
			end = min(end, all[len(all)-1].Begin)
		}
		if begin := max(each.Begin, next); begin < end {
			list = append(list, cases.Passage{Begin: begin, Steps: each.Steps[begin-each.Begin : end-each.Begin]})
			next = end
		}
	}
	return list
}

// lanes lists a lane for each role, those of the case first; where those are many, the ones without a step are left
// out.
func (t *timeline) lanes(c *cases.Case, steps []record.Step) {
	busy := make(map[string]bool)
	for i := range steps {
		busy[steps[i].Role] = true
	}
	var within time.Duration
	for _, place := range c.Start.Roles {
		if len(c.Start.Roles) > maxLanes && !busy[place.Role] {
			continue
		}
		of := lane{
			Name:   place.Role,
			Device: strings.Join(strings.Fields(place.Host+" "+place.Provider+" "+place.Device+" "+place.Address), " "),
			Host:   place.Host,
		}
		if place.ClockWithin != nil {
			of.Clock = "times ±" + duration(*place.ClockWithin)
			within = max(within, *place.ClockWithin)
		}
		t.Lanes = append(t.Lanes, of)
	}
	if within > 0 {
		t.Within = "±" + duration(within)
	}
	for _, step := range steps {
		if t.lane(step.Role) == 0 {
			t.Lanes = append(t.Lanes, lane{Name: laneName(step.Role)})
		}
	}
}

// Class names how many lanes there are, for the style.
func (t *timeline) Class() string {
	if len(t.Lanes) > maxLanes {
		return "many"
	}
	return fmt.Sprintf("lanes-%d", len(t.Lanes))
}

func laneName(role string) string {
	if role == "" {
		return noRole
	}
	return role
}

// lane is the number of a role's lane, 0 when there is none.
func (t *timeline) lane(role string) int {
	return 1 + slices.IndexFunc(t.Lanes, func(l lane) bool { return l.Name == laneName(role) })
}

func (t *timeline) step(c *cases.Case, step *record.Step, end *time.Duration) {
	t.Virtual = t.Virtual || step.Clock != nil
	times := step.OnClock()
	if idle := times.At - *end; idle > longGap {
		t.Rows = append(t.Rows, ladderRow{Gap: duration(idle) + " later"})
	}
	*end = max(*end, times.At+times.Took)
	file := c.File
	if step.File != "" {
		file = step.File
	}
	packets, more := t.sent(step)
	number := t.lane(step.Role)
	id := ""
	if !step.OK && step.XFail == "" {
		t.failed++
		id = fmt.Sprintf("%s-%d", t.id, t.failed)
	}
	t.Rows = append(t.Rows, ladderRow{
		ID: id, Packets: packets, More: more,
		Lane: number, Host: t.Lanes[number-1].Host, Role: laneName(step.Role), At: clock(times.At), Bad: !step.OK,
		Took: duration(times.Took),
		Text: cut(step.Action + " " + step.Text), Sub: cut(step.Outcome), Place: fmt.Sprintf("%s:%d", file, step.Line),
	})
}

// sent are the packets of a step, and how many are not shown.
func (t *timeline) sent(step *record.Step) (rows []packetRow, more int) {
	for i := range step.Packets {
		p := &step.Packets[i]
		if t.packets++; t.packets > maxPackets {
			return rows, len(step.Packets) - i + step.MorePackets
		}
		numbers := fmt.Sprintf("to QP %#x, PSN %d", p.QueuePair, p.PSN)
		if p.Length > 0 {
			numbers += ", " + size(int64(p.Length))
		}
		rows = append(rows, packetRow{
			At: clock(p.At), From: p.From, To: p.To, Name: p.Name, Numbers: numbers, FaultResult: p.FaultResult,
		})
	}
	return rows, step.MorePackets
}

func cut(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > maxText {
		return string(runes[:maxText-1]) + "…"
	}
	return text
}

// clock prints a time since the case began, microseconds apart.
func clock(d time.Duration) string {
	us := d.Microseconds()
	return fmt.Sprintf("%d.%03d\u202f%03d", us/1e6, us/1e3%1e3, us%1e3)
}
