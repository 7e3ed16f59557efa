package trace

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"rdmarun/host/printable"
)

// Lines writes a line for each call, as strace does.
type Lines struct {
	out     *bufio.Writer
	options LineOptions
	process int // the first one
	fold    fold
}

// LineOptions say what is written with each call.
type LineOptions struct {
	// Processes writes process and thread on each line. Otherwise only lines after the second process or thread have
	// them.
	Processes bool
	// Sites writes another line that says where the program made the call.
	Sites bool
	// Untimed leaves out when it returned.
	Untimed bool
}

// NewLines writes to out.
func NewLines(out io.Writer, options LineOptions) *Lines {
	return &Lines{out: bufio.NewWriterSize(out, 1<<16), options: options}
}

// Take writes a call. Empty polls wait until something else comes: more of them are on the same line.
func (l *Lines) Take(call *Call) { l.fold.take(call, l.write) }

// fold makes one call of the empty polls of a queue that follow each other, and of the poll that ends them.
type fold struct{ polls *Call }

func (f *fold) take(call *Call, show func(*Call)) {
	if f.polls != nil {
		if continues(call, f.polls) {
			call.Polls += f.polls.Polls
			if isEmptyPoll(call) {
				call.Start = f.polls.Start
			}
		} else {
			show(f.polls)
		}
		f.polls = nil
	}
	if isEmptyPoll(call) {
		f.polls = call
		return
	}
	show(call)
}

// end shows the polls that nothing has followed.
func (f *fold) end(show func(*Call)) {
	if f.polls != nil {
		show(f.polls)
		f.polls = nil
	}
}

// continues reports whether a poll is of the same queue as the empty polls before it.
func continues(call, folded *Call) bool {
	return call.Name == folded.Name && call.Process == folded.Process && call.Thread == folded.Thread &&
		call.Arguments[0].Value == folded.Arguments[0].Value
}

// isEmptyPoll reports whether a line is about polls without completions only.
func isEmptyPoll(call *Call) bool {
	result, is := call.Result.(int64)
	return is && result == 0 && call.Polls > 0
}

// Flush writes what is buffered. Folded polls stay unless it is the end.
func (l *Lines) Flush(end bool) error {
	if end {
		l.fold.end(l.write)
	}
	return l.out.Flush()
}

func (l *Lines) write(call *Call) {
	if l.process == 0 {
		l.process = call.Process
	}
	if call.Process != 0 && call.Process != l.process || call.Thread != 0 && call.Thread != call.Process {
		l.options.Processes = true
	}
	if !l.options.Untimed {
		fmt.Fprintf(l.out, "%12.6f ", call.End.Seconds())
	}
	if l.options.Processes && call.Process != 0 {
		fmt.Fprintf(l.out, "[%s] ", call.who())
	}
	l.out.WriteString(call.Text())
	l.out.WriteByte('\n')
	if l.options.Sites && call.Site != (Site{}) {
		fmt.Fprintf(l.out, " > %s\n", printable.Line(call.Site.Location().String()))
	}
}

// who is the process, and the thread unless it is the first.
func (c *Call) who() string {
	if c.Thread != 0 && c.Thread != c.Process {
		return fmt.Sprintf("%d/%d", c.Process, c.Thread)
	}
	return strconv.Itoa(c.Process)
}

// Text is the call in one line, without its time and process.
func (c *Call) Text() string {
	if c.Note != "" || c.Unfinished {
		return c.untimed()
	}
	return fmt.Sprintf("%s <%s>", c.untimed(), brief(c.Duration()))
}

// untimed is Text without how long the call took.
func (c *Call) untimed() string {
	var b strings.Builder
	if c.Note != "" {
		b.WriteString("--- ")
		b.WriteString(c.Note)
		b.WriteString(" ---")
		return b.String()
	}
	if c.Nested {
		b.WriteString("  ")
	}
	b.WriteString(c.Name)
	b.WriteByte('(')
	writeFields(&b, c.Arguments)
	b.WriteByte(')')
	switch {
	case c.Unfinished:
		fmt.Fprintf(&b, " = ? (has not returned after %s)", brief(c.Duration()))
		return b.String()
	case c.Result != nil:
		b.WriteString(" = ")
		writeValue(&b, c.Result)
	case c.Failed():
		b.WriteString(" = NULL")
	}
	if c.Failed() {
		fmt.Fprintf(&b, " %s (%s)", ErrnoName(int(c.Errno)), errnoMeaning(int(c.Errno)))
	}
	if len(c.Results) > 0 {
		b.WriteByte(' ')
		if list, only := c.Results[0].Value.(List); only && len(c.Results) == 1 {
			writeValue(&b, list)
		} else {
			b.WriteByte('{')
			writeFields(&b, c.Results)
			b.WriteByte('}')
		}
	}
	if isEmptyPoll(c) && c.Polls > 1 {
		fmt.Fprintf(&b, ", %s", times(c.Polls))
	} else if !isEmptyPoll(c) && c.Polls > 0 {
		fmt.Fprintf(&b, ", after %s 0", times(c.Polls))
	}
	return b.String()
}

func times(count uint64) string {
	if count == 1 {
		return "1 time"
	}
	return strconv.FormatUint(count, 10) + " times"
}

// brief is a duration in three digits.
func brief(d time.Duration) string {
	digits := func(value float64, unit string) string {
		switch {
		case value >= 99.95:
			return fmt.Sprintf("%.0f%s", value, unit)
		case value >= 9.995:
			return fmt.Sprintf("%.1f%s", value, unit)
		}
		return fmt.Sprintf("%.2f%s", value, unit)
	}
	switch {
	case d < time.Microsecond:
		return fmt.Sprintf("%dns", d.Nanoseconds())
	case d < 999500*time.Nanosecond:
		return digits(float64(d)/1e3, "us")
	case d < 999500*time.Microsecond:
		return digits(float64(d)/1e6, "ms")
	}
	return digits(d.Seconds(), "s")
}

func writeFields(b *strings.Builder, fields []Field) {
	for i, field := range fields {
		if i > 0 {
			b.WriteString(", ")
		}
		if field.Name != "" {
			b.WriteString(field.Name)
			b.WriteByte('=')
		}
		writeValue(b, field.Value)
	}
}

func writeValue(b *strings.Builder, value any) {
	switch v := value.(type) {
	case nil:
		b.WriteString("NULL")
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case uint64:
		b.WriteString(strconv.FormatUint(v, 10))
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case Word:
		b.WriteString(string(v))
	case Text:
		b.WriteString(strconv.QuoteToASCII(string(v)))
	case Bytes:
		b.WriteString(quoted(v.Data))
		if uint64(len(v.Data)) < v.Length {
			fmt.Fprintf(b, "... (%d bytes)", v.Length)
		}
	case hex:
		fmt.Fprintf(b, "%#x", uint64(v))
	case explained:
		b.WriteString(v.Name)
		if v.Meaning != "" {
			b.WriteString(" (" + v.Meaning + ")")
		}
	case Struct:
		b.WriteByte('{')
		writeFields(b, v)
		b.WriteByte('}')
	case List:
		b.WriteByte('[')
		for i, each := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			writeValue(b, each)
		}
		b.WriteByte(']')
	case more:
		fmt.Fprintf(b, "... %d more", uint64(v))
	}
}

// quoted shows bytes with escapes of those that are no printable ASCII; zeros at the end are counted.
func quoted(data []byte) string {
	kept := len(data)
	for kept > 0 && data[kept-1] == 0 {
		kept--
	}
	if kept == 0 && len(data) > 0 {
		return fmt.Sprintf("%d zeros", len(data))
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range data[:kept] {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c >= ' ' && c < 0x7f:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	b.WriteByte('"')
	if zeros := len(data) - kept; zeros > 0 {
		fmt.Fprintf(&b, "+%d zeros", zeros)
	}
	return b.String()
}
