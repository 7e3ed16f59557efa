package program

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"rdmarun/host/printable"
)

// Stream is where a program prints.
type Stream int

// The streams.
const (
	Stdout Stream = 1 + iota
	Stderr
)

// String is the name of the stream as standards have it.
func (s Stream) String() string {
	if s == Stderr {
		return "stderr"
	}
	return "stdout"
}

// Line is a line that a program printed.  Its text is printable, without the line end and of at most 64 KiB; a longer
// line is several.
type Line struct {
	Stream Stream
	Text   string
}

const (
	maxLine = 64 << 10
	// quietTime is how long after its last byte a line without line end counts as one: a prompt.
	quietTime = 100 * time.Millisecond
	// lineCost is what a line costs of Limits.Output in addition to its text: empty lines need memory as well.
	lineCost = 32
	// drainTime bounds the wait for the rest of the output when all processes of the program have ended.
	drainTime = 2 * time.Second
)

// read passes on lines of a stream until its end.
func (p *Program) read(stream Stream, from *os.File) {
	defer from.Close()
	chunk := make([]byte, maxLine)
	var rest []byte
	for {
		if len(rest) > 0 && p.drainEnd.Load() == nil {
			_ = from.SetReadDeadline(time.Now().Add(quietTime))
		}
		n, err := from.Read(chunk)
		rest = append(rest, chunk[:n]...)
		for {
			end := bytes.IndexByte(rest, '\n')
			if end < 0 && len(rest) <= maxLine {
				break
			}
			if end < 0 || end > maxLine {
				end = maxLine
				for end > maxLine-utf8.UTFMax && !utf8.RuneStart(rest[end]) {
					end--
				}
				p.print(stream, rest[:end])
				rest = rest[end:]
				continue
			}
			p.print(stream, rest[:end])
			rest = rest[end+1:]
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if end := p.drainEnd.Load(); end == nil {
				err = from.SetReadDeadline(time.Time{})
				if len(rest) > 0 {
					p.print(stream, rest)
					rest = rest[:0]
				}
			} else if time.Now().Before(*end) {
				err = from.SetReadDeadline(*end) // await had set it before this loop set its own
			}
		}
		if err != nil {
			if len(rest) > 0 {
				p.print(stream, rest)
			}
			return
		}
	}
}

// print passes on one line.
func (p *Program) print(stream Stream, raw []byte) {
	text := strings.ReplaceAll(printable.Text(strings.TrimSuffix(string(raw), "\r")), "\n", "␊")
	for first := true; first || text != ""; first = false {
		line := Line{stream, text}
		if len(text) > maxLine { // a character to show may have more bytes
			line.Text = strings.TrimSuffix(printable.Cut(text, maxLine), "...")
		}
		text = text[len(line.Text):]
		p.add(line)
	}
}

// add passes on one line, unless the limit of output was reached.
func (p *Program) add(line Line) {
	p.printing.Lock() // one line at a time, also over the call
	defer p.printing.Unlock()
	p.mutex.Lock()
	cost := len(line.Text) + lineCost
	if p.full || p.printed > p.config.Limits.Output-cost {
		isFirst := !p.full
		p.full = true
		p.mutex.Unlock()
		if isFirst {
			p.end(Failed, p.config.Limits.Grace)
		}
		return
	}
	p.printed += cost
	p.lines = append(p.lines, line)
	close(p.changed)
	p.changed = make(chan struct{})
	p.mutex.Unlock()
	if p.config.Output != nil {
		p.config.Output(line)
	}
}

// Lines returns the lines from that number on, and a channel that is closed at the next line, or at the end.
func (p *Program) Lines(from int) (lines []Line, changed <-chan struct{}) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	from = min(max(from, 0), len(p.lines))
	return p.lines[from:len(p.lines):len(p.lines)], p.changed
}
