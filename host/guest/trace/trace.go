// Package trace shows the calls of guests with their arguments and results, as strace(1) shows system calls. It
// decodes them by the model of the ABI. trace.go decides what is shown and when, decode.go makes a line from a call,
// and value.go the text of a value.
package trace

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero/api"

	"rdmarun/host/printable"
	"rdmarun/hostfuncs"
	"rdmarun/hostfuncs/model"
)

// Tracer shows the calls of all guests of a runtime.  A runtime without one pays nothing for it: the functions of a
// traced runtime are other ones.
type Tracer struct {
	calls map[string]*call // of the functions that are shown
	lines chan []byte
	shut  chan struct{} // closed by Close: what comes then is not shown
	once  sync.Once
	ended chan struct{}
	lost  atomic.Int64 // lines that were not written in time
}

const (
	// writeTimeout is how long a guest waits for the reader of the lines, and Close for the last lines.
	writeTimeout = 5 * time.Second
	// remoteWriteTimeout is that of a tracer on another host, which waits for an answer: less than the silence after
	// which a host is lost.
	remoteWriteTimeout = 2 * time.Second
)

// New makes a tracer that writes to out; of the named functions only, if there are names.  The caller closes it.
func New(out io.Writer, names []string) (*Tracer, error) {
	m := model.Of()
	t := &Tracer{
		calls: callsOf(&m), lines: make(chan []byte, 256), shut: make(chan struct{}), ended: make(chan struct{}),
	}
	for _, name := range names {
		if t.calls[name] == nil {
			return nil, fmt.Errorf("no host function is called %q; docs/abi.md has them all", name)
		}
	}
	if len(names) > 0 {
		maps.DeleteFunc(t.calls, func(name string, _ *call) bool { return !slices.Contains(names, name) })
	}
	go func() {
		defer close(t.ended)
		for {
			select {
			case line := <-t.lines:
				_, _ = out.Write(t.more(line))
				continue
			case <-t.shut:
			}
			if rest := t.more(nil); len(rest) == 0 {
				return
			} else if _, err := out.Write(rest); err != nil {
				return
			}
		}
	}()
	return t, nil
}

// maxAtOnce is how many bytes of further lines are written together with a line.
const maxAtOnce = 128 << 10

// more appends queued lines, so that a remote host gets one message.
func (t *Tracer) more(lines []byte) []byte {
	for len(lines) < maxAtOnce {
		select {
		case line := <-t.lines:
			lines = append(lines, line...)
		default:
			return lines
		}
	}
	return lines
}

// maxElsewhere bounds a line of a tracer elsewhere, in bytes.
const maxElsewhere = 4 * maxText

// Elsewhere shows a line of a tracer elsewhere.
func (t *Tracer) Elsewhere(where, line string) {
	t.write(printable.Brief(where+": "+line, maxElsewhere), remoteWriteTimeout)
}

// Close writes what is left, and ends the tracer.  Guests must have ended.
func (t *Tracer) Close() error {
	var err error
	t.once.Do(func() {
		close(t.shut)
		select {
		case <-t.ended:
		case <-time.After(writeTimeout):
			err = fmt.Errorf("the trace has no reader")
			return
		}
		if lost := t.lost.Load(); lost > 0 {
			err = fmt.Errorf("the trace was not read in time: %d lines of it are lost", lost)
		}
	})
	return err
}

// write hands a line over.  After one wait that failed it does not wait again.  It holds no lock: a guest that waits
// blocks neither other guests nor the end of the tracer.
func (t *Tracer) write(line string, wait time.Duration) {
	select {
	case <-t.shut:
		return
	default:
	}
	select {
	case t.lines <- []byte(line + "\n"):
		return
	default:
	}
	if t.lost.Load() > 0 {
		wait = 0
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case t.lines <- []byte(line + "\n"):
	case <-t.shut:
	case <-late.C:
		t.lost.Add(1)
	}
}

// Guest is the calls of one guest.  It is used by the goroutine that runs the guest.
type Guest struct {
	// Hides reports, where it is set, that the call that is about to be made is not the guest's own.
	Hides func() bool

	tracer *Tracer
	name   string
	shown  int
	recent []repeated
}

// repeated is a line, and how often the same call was made again.
type repeated struct {
	text  string
	again int
}

const (
	// maxLines is how many calls of a guest are shown.
	maxLines = 1 << 18
	// cycle is the longest loop of calls with rounds that are counted, not shown: a poll, and a yield.
	cycle = 2
)

// Guest begins to trace a guest.  The caller ends it.
func (t *Tracer) Guest(name string) *Guest {
	return &Guest{tracer: t, name: printable.Line(name)}
}

// End writes the count of the calls that were not shown.
func (g *Guest) End() { g.flushRepeats(0) }

// show shows a call, unless it is one of the last ones once more.
func (g *Guest) show(text string, took time.Duration) {
	for i := range g.recent {
		if g.recent[i].text == text {
			g.recent[i].again++
			return
		}
	}
	if slices.ContainsFunc(g.recent, func(each repeated) bool { return each.again > 0 }) {
		g.flushRepeats(0)
	}
	g.flushRepeats(cycle - 1)
	g.recent = append(g.recent, repeated{text: text})
	g.line(text + " <" + timeText(took) + ">")
}

// flushRepeats drops all but the last lines, and writes how often they were repeated.
func (g *Guest) flushRepeats(but int) {
	for len(g.recent) > but {
		if oldest := g.recent[0]; oldest.again > 0 {
			g.line(fmt.Sprintf("%s (%d times more)", oldest.text, oldest.again))
		}
		g.recent = g.recent[1:]
	}
}

func (g *Guest) line(text string) {
	switch g.shown++; {
	case g.shown < maxLines:
		g.tracer.write(g.name+": "+text, writeTimeout)
	case g.shown == maxLines:
		g.tracer.write(g.name+": ... more calls are not shown", writeTimeout)
	}
}

// timeText is a duration with two or three digits.
func timeText(d time.Duration) string {
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= unit {
			return d.Round(unit / 10).String()
		}
	}
	return d.String()
}

// Wrap is a function as the guests of a traced runtime import it; of finds the guest that calls it.
func (t *Tracer) Wrap(of func(context.Context) *Guest) hostfuncs.Wrap {
	return func(function hostfuncs.Function, plain api.GoFunc) api.GoFunc {
		c := t.calls[function.Name]
		if c == nil {
			return plain
		}
		return func(ctx context.Context, stack []uint64) {
			guest, instance := of(ctx), hostfuncs.InstanceOf(ctx)
			if guest.Hides != nil && guest.Hides() {
				plain(ctx, stack)
				return
			}
			given := slices.Clone(stack[:len(c.params)])
			var text strings.Builder
			c.before(&text, instance.Memory(), given)
			began, returned := time.Now(), false
			defer func() {
				if !returned { // the guest is over
					guest.show(text.String()+" = ?", time.Since(began))
				}
			}()
			plain(ctx, stack)
			took := time.Since(began)
			returned = true
			c.after(&text, instance, given, int32(uint32(stack[0])))
			guest.show(text.String(), took)
		}
	}
}
