package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"rdmarun/host/printable"
	"rdmarun/host/record"
	"rdmarun/host/scenario/quantity"
)

// Progress shows that a run continues while there is nothing else to show. On a terminal it is a line below everything
// else, redrawn several times a second. Elsewhere it is a line every half minute. It is also the writer of everything
// above that line. Close ends it.
type Progress struct {
	out     io.Writer
	options ProgressOptions
	stop    chan struct{}
	stopped sync.WaitGroup

	mu     sync.Mutex // of what follows
	begin  time.Time
	begun  bool
	total  int // 0: unknown
	done   int
	failed int
	// running is the case that began last, and since when.
	running string
	since   time.Time
	// rate is the current measurement's; progress is the progress of the running steps, nil if unknown.
	rate     string
	progress func() string
	// drawn: the line is on the terminal.
	drawn bool
	// open: the last output ended within a line.
	open bool
	beat time.Time // of the last line off a terminal
}

// ProgressOptions select where and how to draw.
type ProgressOptions struct {
	// Live redraws a line; without it a line is printed every Heartbeat.
	Live bool
	// Width is that of the terminal, which may change.
	Width func() int
	Style Style
	// Now is the clock; nil: the system's.  Tick is when to look at it; nil: ten times a second.
	Now  func() time.Time
	Tick <-chan time.Time
}

const (
	// heartbeat is the longest time without a line where there is no terminal.
	heartbeat = 30 * time.Second
	// quietAtFirst keeps the line from flashing by: a shorter run needs none.
	quietAtFirst = 500 * time.Millisecond
	redraw       = 100 * time.Millisecond
	// guessAfter is how long a run must have run for an estimate of what is left.
	guessAfter = 2 * time.Second
)

// NewProgress writes to out.
func NewProgress(out io.Writer, options ProgressOptions) *Progress {
	p := &Progress{out: out, options: options, stop: make(chan struct{})}
	if p.options.Now == nil {
		p.options.Now = time.Now
	}
	tick, end := p.options.Tick, func() {}
	if tick == nil {
		ticker := time.NewTicker(redraw)
		tick, end = ticker.C, ticker.Stop
	}
	p.begin = p.options.Now()
	p.beat = p.begin
	p.stopped.Go(func() {
		defer end()
		for {
			select {
			case <-tick:
				p.update()
			case <-p.stop:
				return
			}
		}
	})
	return p
}

// Close removes the line.
func (p *Progress) Close() {
	close(p.stop)
	p.stopped.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
}

// Write implements io.Writer: it removes the line first, and the next look draws it again.
func (p *Progress) Write(text []byte) (int, error) { return p.write(p.out, text) }

func (p *Progress) write(out io.Writer, text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	if len(text) > 0 {
		p.open = text[len(text)-1] != '\n'
		p.beat = p.options.Now()
	}
	return out.Write(text)
}

// Above is a writer of what else may be on the same terminal, such as standard error: the line makes room for it, too.
func (p *Progress) Above(out io.Writer) io.Writer { return &above{p, out} }

type above struct {
	*Progress
	out io.Writer
}

func (a *above) Write(text []byte) (int, error) { return a.write(a.out, text) }

// Wants implements record.Consumer.
func (p *Progress) Wants(kind record.Kind) bool {
	switch kind {
	case record.RunStart, record.CaseStart, record.CaseEnd, record.Measured:
		return true
	}
	return false
}

// Record implements record.Consumer.
func (p *Progress) Record(r *record.Record) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r.Kind {
	case record.RunStart:
		p.begun = true
		if !r.Run.UntilFail {
			p.total = r.Run.Cases
		}
	case record.CaseStart:
		p.running, p.since, p.rate, p.progress = r.Case, p.options.Now(), "", r.Start.Progress
	case record.Measured:
		p.rate = rateOf(r.Measure)
	case record.CaseEnd:
		p.done++
		if !r.Result.Status.OK() {
			p.failed++
		}
		p.running, p.rate, p.progress = "", "", nil
	}
	return nil
}

// rateOf is the figure that a measurement is about.
func rateOf(m *record.Measure) string {
	switch {
	case m.Type == record.LatencyType && len(m.Latency) > 0:
		return "p50 " + Duration(time.Duration(m.Latency[0].P50))
	case m.HasBandwidth():
		return BitRate(m.BitsPerSecond)
	case m.HasRate():
		return PerSecond(m.MessagesPerSecond) + "/s"
	}
	return ""
}

// update draws or prints the line when it is time to.
func (p *Progress) update() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.options.Now()
	switch {
	case p.open:
	case p.options.Live && now.Sub(p.begin) >= quietAtFirst:
		p.erase()
		text := p.fitting(now, max(p.options.Width(), 20)-1) // a full line would wrap
		_, _ = fmt.Fprint(p.out, p.options.Style.dim(text))  // the next Write returns the error
		p.drawn = true
	case !p.options.Live && now.Sub(p.beat) >= heartbeat:
		p.beat = now
		_, _ = fmt.Fprintf(p.out, "%s\n", printable.Log(printable.Line(p.text(now, p.running))))
	}
}

// erase removes the line: back to its beginning, and clear to the end (ECMA-48: CR, EL).
func (p *Progress) erase() {
	if p.drawn {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K")
		p.drawn = false
	}
}

// fitting is the line with no more than so many characters: the name of the case is shortened first.
func (p *Progress) fitting(now time.Time, most int) string {
	text := printable.Line(p.text(now, p.running))
	if excess := utf8.RuneCountInString(text) - most; excess > 0 {
		running := printable.Line(p.running)
		text = printable.Line(p.text(now, cut(running, max(utf8.RuneCountInString(running)-excess, 4))))
	}
	return cut(text, most)
}

// text is the line: how far, which case, since when, how fast, how much longer.
func (p *Progress) text(now time.Time, running string) string {
	elapsed := now.Sub(p.begin)
	far := fmt.Sprintf("[%d]", p.done)
	if p.total > 0 {
		far = fmt.Sprintf("[%d/%d]", p.done, p.total)
	}
	if !p.begun {
		far = "starting" // hosts of a lab, say
	}
	parts := []string{far}
	if p.failed > 0 {
		parts[0] += fmt.Sprintf(" %d failed", p.failed)
	}
	if running != "" {
		parts = append(parts, running, brief(now.Sub(p.since)))
		if progress := p.far(); progress != "" {
			parts = append(parts, progress)
		}
	} else {
		parts = append(parts, brief(elapsed))
	}
	if p.rate != "" {
		parts = append(parts, p.rate)
	} else if perSecond := float64(p.done) / elapsed.Seconds(); p.done > 0 && perSecond >= 1 {
		parts = append(parts, fmt.Sprintf("%.0f cases/s", perSecond))
	}
	if left := p.total - p.done; p.done > 0 && left > 0 && elapsed >= guessAfter {
		parts = append(parts, "about "+brief(elapsed*time.Duration(left)/time.Duration(p.done))+" left")
	}
	return strings.Join(parts, "  ")
}

// far is the progress of the running steps, "" if it is unknown.
func (p *Progress) far() string {
	if p.progress == nil {
		return ""
	}
	return p.progress()
}

// brief prints a time that is running: in tenths of a second, from a minute on in seconds.
func brief(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return quantity.Time(d.Round(time.Second))
}

// cut shortens a line in the middle, where ids of one file are the same.
func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	runes := []rune(text)
	head := most / 3
	tail := most - head - 1
	return string(runes[:head]) + "…" + string(runes[len(runes)-tail:])
}
