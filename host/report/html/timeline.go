package html

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"rdmarun/host/report/cases"
	"rdmarun/host/scenario/record"
)

// A timeline is a ladder: a lane for each role from left to right, time from top to bottom, a box a step.
// Its rows are evenly spaced, since the times of one case may lie a microsecond or a minute apart; where
// nothing happened for long, the time that went by stands between the rows.
type timeline struct {
	Width, Height int
	Left, Right   int
	Bottom        int
	Lanes         []lane
	Rows          []ladderRow
	Dropped       int
}

type lane struct {
	Name     string
	X, Width int
	Middle   int
	Device   string
}

type ladderRow struct {
	// Gap is a text between rows instead of a step.
	Gap   string
	Y     int
	At    string
	X     int
	Width int
	Text  string
	Sub   string
	Full  string
	Bad   bool
	Took  string
}

// Measures in pixels of the picture.
const (
	timeWidth   = 92
	laneGap     = 14
	laneMin     = 230
	laneMax     = 420
	ladderWidth = 980
	headHeight  = 40
	boxHeight   = 38
	rowHeight   = 46
	gapHeight   = 26
	glyphWidth  = 6.75 // of the monospaced font at 11 pixels
	longGap     = 5 * time.Millisecond
	noRole      = "runner"
	textInset   = 9
)

func newTimeline(c *cases.Case) *timeline {
	steps := c.Steps.Head()
	last := c.Steps.Last()
	if len(steps)+len(last) == 0 {
		return nil
	}
	t := &timeline{Dropped: c.Steps.Dropped()}
	t.lanes(c, append(slices.Clone(steps), last...))
	y := headHeight + 12
	var end time.Duration
	for _, step := range steps {
		y = t.step(c, &step, y, &end)
	}
	if t.Dropped > 0 {
		t.Rows = append(t.Rows, ladderRow{Gap: plural(t.Dropped, "more step"), Y: y + gapHeight/2})
		y += gapHeight
		end = last[0].At
	}
	for _, step := range last {
		y = t.step(c, &step, y, &end)
	}
	t.Bottom, t.Height = y, y+6
	t.Left = timeWidth
	t.Right = t.Width - 8
	return t
}

// lanes lays out a lane for each role, those of the case first.
func (t *timeline) lanes(c *cases.Case, steps []record.Step) {
	for _, place := range c.Start.Roles {
		t.Lanes = append(t.Lanes, lane{Name: place.Role, Device: place.Device + " " + place.Address})
	}
	for _, step := range steps {
		if t.lane(step.Role) == nil {
			t.Lanes = append(t.Lanes, lane{Name: laneName(step.Role)})
		}
	}
	n := len(t.Lanes)
	width := min(max((ladderWidth-timeWidth-n*laneGap)/n, laneMin), laneMax)
	for i := range t.Lanes {
		t.Lanes[i].X = timeWidth + i*(width+laneGap)
		t.Lanes[i].Width = width
		t.Lanes[i].Middle = t.Lanes[i].X + width/2
	}
	t.Width = timeWidth + n*(width+laneGap)
}

func laneName(role string) string {
	if role == "" {
		return noRole
	}
	return role
}

func (t *timeline) lane(role string) *lane {
	for i := range t.Lanes {
		if t.Lanes[i].Name == laneName(role) {
			return &t.Lanes[i]
		}
	}
	return nil
}

// step adds a step at y and returns where the next one goes.
func (t *timeline) step(c *cases.Case, step *record.Step, y int, end *time.Duration) int {
	if idle := step.At - *end; idle > longGap {
		t.Rows = append(t.Rows, ladderRow{Gap: duration(idle) + " later", Y: y + gapHeight/2 - 4})
		y += gapHeight
	}
	*end = max(*end, step.At+step.Took)
	at := t.lane(step.Role)
	row := ladderRow{
		Y: y, At: clock(step.At), X: at.X, Width: at.Width, Bad: !step.OK,
		Full: strings.TrimSpace(cases.StepText(c.File, step)), Took: duration(step.Took),
	}
	room := int(float64(at.Width-2*textInset) / glyphWidth)
	row.Text = cut(strings.TrimSpace(step.Action+" "+step.Text), room)
	row.Sub = cut(step.Outcome, room-utf8.RuneCountInString(row.Took)-2)
	t.Rows = append(t.Rows, row)
	return y + rowHeight
}

// TextX is where the text of a box begins.
func (r ladderRow) TextX() int { return r.X + textInset }

// TookX is where its time ends.
func (r ladderRow) TookX() int { return r.X + r.Width - textInset }

// FirstY is the line of the text, SecondY that of the outcome.
func (r ladderRow) FirstY() int { return r.Y + 15 }

// SecondY is the line of the outcome.
func (r ladderRow) SecondY() int { return r.Y + 30 }

func cut(text string, room int) string {
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) <= room {
		return text
	}
	return string([]rune(text)[:max(room-1, 0)]) + "…"
}

// clock prints a time since the case began, microseconds apart.
func clock(d time.Duration) string {
	us := d.Microseconds()
	return fmt.Sprintf("%d.%03d\u202f%03d", us/1e6, us/1e3%1e3, us%1e3)
}
