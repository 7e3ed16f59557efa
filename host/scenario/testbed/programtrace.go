package testbed

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"rdmarun/host/program"
	"rdmarun/host/trace"
)

const (
	// maxTraced bounds the lines that the calls of one start of a program take.
	maxTraced = 10_000
	// lastCalls is how many calls belong to how a program ended.
	lastCalls = 5
)

// programTrace shows the calls of one start of a program as lines of its output.
type programTrace struct {
	collector *trace.Collector
	filter    *trace.Filter
	began     time.Time
	write     func(line string, at time.Time)
	lines     *trace.Lines

	mutex  sync.Mutex // of all below; the collector calls from two goroutines
	at     time.Time  // of the call that is written
	shown  int
	hidden int
	last   []string
}

// newProgramTrace has the library that records calls preloaded into a program.  The caller closes the trace after the
// program.
func newProgramTrace(
	filter *trace.Filter, config *program.Config, softLibrary string, write func(line string, at time.Time),
) (*programTrace, error) {
	library, err := program.FindTraceLibrary(softLibrary)
	if err != nil {
		return nil, err
	}
	p := &programTrace{filter: filter, write: write, began: time.Now()}
	p.lines = trace.NewLines(
		&lineWriter{write: func(line string) { p.write(line, p.at) }}, trace.LineOptions{Untimed: true},
	)
	p.collector, err = trace.NewCollector(trace.Options{Take: p.take, Warn: p.warn})
	if err != nil {
		return nil, err
	}
	config.Environment[trace.Variable] = p.collector.Setting()
	if config.Soft != nil {
		config.Soft.Trace = library
	} else {
		program.Preload(config.Environment, library)
	}
	return p, nil
}

// take shows a call.
func (p *programTrace) take(call *trace.Call) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if call.Note == "" {
		p.last = append(p.last[max(0, len(p.last)-lastCalls+1):], call.Text())
	}
	switch {
	case !p.filter.Shows(call):
	case p.shown < maxTraced:
		p.shown++
		p.at = p.began.Add(call.End)
		p.lines.Take(call)
		_ = p.lines.Flush(false) // the writer does not fail
	default:
		p.hidden++
	}
}

// warn shows what is missing.
func (p *programTrace) warn(sentence string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.write("--- "+sentence+" ---", time.Now())
}

// close waits until all calls are shown.  The program has ended.
func (p *programTrace) close() {
	p.collector.Close()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.at = time.Now()
	_ = p.lines.Flush(true)
	if p.hidden > 0 {
		p.write(fmt.Sprintf("--- %d more calls are not shown: choose some (trace: connection) ---", p.hidden), p.at)
	}
}

// ending is the last calls, a line each, as the end of a text; "" without a trace.  It is closed.
func (p *programTrace) ending() string {
	if p == nil || len(p.last) == 0 {
		return ""
	}
	return "\nits last calls:\n  " + strings.Join(p.last, "\n  ")
}
