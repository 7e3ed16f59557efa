package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// input is the standard input of a program.
type input struct {
	file   *os.File
	busy   chan struct{} // has a value during a write
	closed atomic.Bool   // no more is to be written
	ended  chan struct{} // closed with the program
}

// newInput writes first, which the program may read late or never.
func newInput(file *os.File, first string) *input {
	in := &input{file: file, busy: make(chan struct{}, 1), ended: make(chan struct{})}
	if first != "" {
		in.busy <- struct{}{}
		go func() {
			_, _ = in.file.WriteString(first) // ends with the program
			<-in.busy
		}()
	}
	return in
}

// end ends all that waits.
func (in *input) end() {
	in.closed.Store(true)
	in.file.Close()
	close(in.ended)
}

var (
	errInputClosed = errors.New("its standard input was closed by close_stdin")
	errEnded       = errors.New("it has ended")
)

// Write writes to the standard input of the program, until ctx ends: a program may not read.
func (p *Program) Write(ctx context.Context, text string) error {
	if err := p.stdin.write(ctx, text); err != nil {
		return fmt.Errorf("write to program of %s: %w", p.config.Name, err)
	}
	return nil
}

func (in *input) write(ctx context.Context, text string) error {
	select {
	case in.busy <- struct{}{}:
	case <-in.ended:
		return errEnded
	case <-ctx.Done():
		return fmt.Errorf("it does not read what was written before: %w", ctx.Err())
	}
	defer func() { <-in.busy }()
	select {
	case <-in.ended:
		return errEnded
	default:
	}
	if in.closed.Load() {
		return errInputClosed
	}
	expired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = in.file.SetWriteDeadline(time.Unix(1, 0))
		close(expired)
	})
	written, err := in.file.WriteString(text)
	if !stop() {
		<-expired
		_ = in.file.SetWriteDeadline(time.Time{})
	}
	switch {
	case errors.Is(err, unix.EPIPE):
		return fmt.Errorf("it has closed its standard input, or has ended: %w", unix.EPIPE)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("it does not read its standard input, which has taken %d of %d bytes: %w", written, len(text),
			ctx.Err())
	case errors.Is(err, os.ErrClosed):
		return errEnded
	}
	return err
}

// CloseStdin closes the standard input of the program once it has read what was written.
func (p *Program) CloseStdin() error {
	in := p.stdin
	if in.closed.Swap(true) {
		select {
		case <-in.ended:
			return fmt.Errorf("close stdin of program of %s: %w", p.config.Name, errEnded)
		default:
			return fmt.Errorf("close stdin of program of %s: it is closed already", p.config.Name)
		}
	}
	go func() {
		select {
		case in.busy <- struct{}{}:
			in.file.Close()
			<-in.busy
		case <-in.ended:
		}
	}()
	return nil
}
