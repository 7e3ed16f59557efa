package trace

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

//go:embed page.html
var pageText string

// Page writes calls as one HTML file: a table of functions, and a row for each call, which can be filtered. A browser
// opens it without a network.
type Page struct {
	out     io.Writer
	title   string
	options LineOptions
	summary *Summary
	fold    fold
	first   []pageRow
	failed  []pageRow // between the first and the last
	last    []pageRow // a ring
	next    int       // the oldest of last
	calls   int
	bad     int
	groups  []string
}

// Bounds of a page. The first and the last calls are shown, and between them those that failed.
const (
	pageFirst  = 4000
	pageFailed = 2000
	pageLast   = 4000
)

// pageRow is a call as the template has it.
type pageRow struct {
	At, Who, Group, Text, Took, Site string
	Bad                              bool
	// Bar is the share of the width that stands for the duration, on a logarithmic scale up to a second.
	Bar int
	// Missing is how many calls before this one are left out.
	Missing int
	number  int
}

// NewPage returns a page about a program, which is written at the end. Of the options, Sites counts.
func NewPage(out io.Writer, title string, options LineOptions) *Page {
	return &Page{out: out, title: title, options: options, summary: NewSummary()}
}

// Take adds a call. Empty polls wait until something else comes, as for Lines.
func (p *Page) Take(call *Call) {
	p.fold.take(call, p.add)
}

func (p *Page) add(call *Call) {
	p.summary.Take(call)
	p.calls++
	row := newPageRow(call, p.calls, p.options.Sites)
	if row.Bad {
		p.bad++
	}
	if row.Group != "" && !slices.Contains(p.groups, row.Group) {
		p.groups = append(p.groups, row.Group)
	}
	switch {
	case len(p.first) < pageFirst:
		p.first = append(p.first, row)
	case len(p.last) < pageLast:
		p.last = append(p.last, row)
	default:
		if oldest := p.last[p.next]; oldest.Bad && len(p.failed) < pageFailed {
			p.failed = append(p.failed, oldest)
		}
		p.last[p.next] = row
		p.next = (p.next + 1) % pageLast
	}
}

func newPageRow(call *Call, number int, sites bool) pageRow {
	row := pageRow{
		At: fmt.Sprintf("%.6f", call.End.Seconds()), Group: call.Group, Text: call.Text(), number: number,
		Bad: call.Failed() || call.Failures > 0 || call.Unfinished || call.Note != "",
	}
	if call.Process != 0 {
		row.Who = call.who()
	}
	if took := call.Duration(); took > 0 && call.Note == "" {
		row.Took = brief(took)
		row.Bar = max(1, int(math.Round(100*math.Log10(float64(min(took, time.Second)))/9)))
		row.Text = call.untimed()
	}
	if sites && call.Site != (Site{}) {
		row.Site = call.Site.Location().String()
	}
	return row
}

// rows are those that are shown, each with the number of those left out before it.
func (p *Page) rows() []pageRow {
	rows := append(append(append([]pageRow{}, p.first...), p.failed...), p.last[p.next:]...)
	rows = append(rows, p.last[:p.next]...)
	for i := range rows {
		before := 0
		if i > 0 {
			before = rows[i-1].number
		}
		rows[i].Missing = rows[i].number - before - 1
	}
	return rows
}

// End writes the page. ended says how the program has ended.
func (p *Page) End(ended string) error {
	p.fold.end(p.add)
	page, err := template.New("page").Parse(pageText)
	if err != nil {
		return err
	}
	var table strings.Builder
	if err := p.summary.Write(&table); err != nil {
		return err
	}
	return page.Execute(p.out, struct {
		Title, Ended, Table string
		Calls, Bad          int
		Groups              []string
		Rows                []pageRow
	}{p.title, ended, table.String(), p.calls, p.bad, p.groups, p.rows()})
}
