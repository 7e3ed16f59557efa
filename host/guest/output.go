package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"syscall"

	"rdmarun/host/printable"
	"rdmarun/hostfuncs"
)

// outputs is where a guest's standard output, its standard error and its log go.  They share one limit.  If a write
// does not return, because a pipe has no reader, the guest waits for it only until its time limit.
type outputs struct {
	ctx    context.Context
	left   int64 // bytes that the guest may write yet
	full   func()
	stdout *outputWriter
	stderr *outputWriter
}

// errOutputFull is the error of a write beyond the guest's limit.
var errOutputFull = &outputFullError{}

type outputFullError struct{}

func (*outputFullError) Error() string {
	return "no space left: the guest has written as much as its limit \"output\" allows"
}
func (*outputFullError) Unwrap() error { return syscall.ENOSPC }

func (g *Guest) newOutputs(ctx context.Context) *outputs {
	o := &outputs{ctx: ctx, left: g.config.Limits.Output}
	o.stdout, o.stderr = newOutputWriter(o, g.config.Stdout), newOutputWriter(o, g.config.Stderr)
	o.full = func() {
		if g.config.Stderr != nil {
			o.stderr.pass([]byte(fmt.Sprintf("%s: WARN: it has written %s, which is its limit \"output\"; the rest is "+
				"not shown\n",
				g.name, hostfuncs.Bytes(g.config.Limits.Output))))
		}
	}
	return o
}

// close ends the goroutines of writers that do not hang.
func (o *outputs) close() {
	o.stdout.close()
	o.stderr.close()
}

// take counts bytes that the guest writes.
func (o *outputs) take(bytes int) error {
	if o.left < 0 {
		return errOutputFull
	}
	if o.left -= int64(bytes); o.left < 0 {
		o.full()
		return errOutputFull
	}
	return nil
}

// outputWriter hands what a guest writes to a goroutine of its own, which may wait for as long as it takes.
type outputWriter struct {
	outputs *outputs
	to      io.Writer
	chunks  chan []byte // made by the first write
	results chan error
	buffer  []byte // a copy: the guest's memory may change, or be unmapped, while it is being written
	begun   []byte // what was written first, up to more than maxLine bytes
}

// maxLine is the longest line, in bytes, that may say why a guest has ended.
const maxLine = 200

// onlyLine is the line that a guest has written, "" if it has written none, or anything else too.  A single line on
// standard error is why it has ended; the last of many is often not.
func (w *outputWriter) onlyLine() string {
	line, whole := strings.CutSuffix(string(w.begun), "\n")
	if !whole || len(line) > maxLine || strings.Contains(line, "\n") {
		return ""
	}
	return printable.Line(line)
}

func newOutputWriter(o *outputs, to io.Writer) *outputWriter {
	if to == nil {
		to = io.Discard
	}
	return &outputWriter{outputs: o, to: to}
}

// Write is called by wazero for each buffer of fd_write, of any length.
func (w *outputWriter) Write(data []byte) (int, error) {
	written := 0
	for {
		if w.outputs.ctx.Err() != nil {
			endGuest()
		}
		chunk := data[written:min(len(data), written+streamChunk)]
		if len(chunk) == 0 {
			return written, nil
		}
		if err := w.outputs.take(len(chunk)); err != nil {
			return written, err
		}
		if err := w.pass(chunk); err != nil {
			return written, err
		}
		written += len(chunk)
	}
}

// pass writes a chunk, and ends the guest if that takes longer than the guest may live.
func (w *outputWriter) pass(chunk []byte) error {
	if room := maxLine + 2 - len(w.begun); room > 0 {
		w.begun = append(w.begun, chunk[:min(room, len(chunk))]...)
	}
	if w.chunks == nil {
		w.chunks, w.results = make(chan []byte), make(chan error, 1)
		go writeAll(w.to, w.chunks, w.results)
	}
	w.buffer = append(w.buffer[:0], chunk...)
	w.chunks <- w.buffer
	select {
	case err := <-w.results:
		return err
	case <-w.outputs.ctx.Done():
	}
	// The write ended at the same moment, or hangs: then the goroutine has the buffer, and the guest ends.
	select {
	case err := <-w.results:
		return err
	default:
		w.abandon()
		endGuest()
		return nil
	}
}

func writeAll(to io.Writer, chunks chan []byte, results chan error) {
	for chunk := range chunks {
		_, err := to.Write(chunk)
		results <- err
	}
}

// abandon leaves a goroutine that hangs alone: it ends with its write.
func (w *outputWriter) abandon() {
	w.close()
	w.to, w.buffer = io.Discard, nil
}

func (w *outputWriter) close() {
	if w.chunks != nil {
		close(w.chunks)
		w.chunks = nil
	}
}

// log takes a line that the guest logs.
func (g *Guest) log(level slog.Level, text string) error {
	if g.config.Logger != nil {
		if err := g.outputs.take(len(text)); err != nil {
			return err
		}
		g.config.Logger.Log(context.Background(), level, text, "guest", g.name)
		return nil
	}
	if g.config.Stderr == nil {
		return nil
	}
	_, err := fmt.Fprintf(g.outputs.stderr, "%s: %s: %s\n", g.name, level, text)
	var full *outputFullError
	if errors.As(err, &full) {
		return err
	}
	return nil // a line that is not shown is no error of the guest
}
