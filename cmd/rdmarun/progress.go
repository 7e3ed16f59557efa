package main

import (
	"io"
	"os"

	"golang.org/x/term"

	"rdmarun/host/output/terminal"
	"rdmarun/host/record"
)

// progress is the sign of life of a run; nil when it is to be quiet.
type progress struct{ *terminal.Progress }

// showProgress begins it and returns what everything else on w is to be written to.  The caller ends it.
func (a *app) showProgress(w io.Writer, quiet bool, style terminal.Style) (shown io.Writer, p progress) {
	if quiet {
		return w, progress{}
	}
	p.Progress = terminal.NewProgress(w, terminal.ProgressOptions{
		Live: a.canRedraw(w), Width: func() int { return terminalWidth(w) }, Style: style,
	})
	return p.Progress, p
}

// canRedraw tells whether a line on w can be drawn anew: not in a file, not on a terminal that only prints, and not
// in the log of a CI system, some of which pretend to be a terminal.
func (a *app) canRedraw(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && a.env["TERM"] != "dumb" && (a.env["CI"] == "" || a.env["CI"] == "false") && term.IsTerminal(int(file.Fd()))
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
