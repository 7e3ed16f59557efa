package outfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
)

// Spool holds parts of a report until what stands before them is known.  It is a file without a name: it goes with
// the process, however that ends.  The zero Spool is ready; Close gives it back.
type Spool struct {
	file   *os.File
	buffer *bufio.Writer
	size   int64
}

// Part is a stretch of a spool.
type Part struct{ offset, length int64 }

// Write implements io.Writer: it appends.
func (s *Spool) Write(data []byte) (int, error) {
	if s.file == nil {
		if err := s.create(); err != nil {
			return 0, err
		}
	}
	n, err := s.buffer.Write(data)
	s.size += int64(n)
	return n, err
}

func (s *Spool) create() error {
	file, err := os.CreateTemp("", "rdmarun-report-*")
	if err != nil {
		return fmt.Errorf("hold parts of a report: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		return errors.Join(fmt.Errorf("hold parts of a report: %w", err), file.Close())
	}
	s.file, s.buffer = file, bufio.NewWriterSize(file, 1<<16)
	return nil
}

// Append calls write to append a part, and adds it to parts, of which the last grows when the new one follows it.
func (s *Spool) Append(parts []Part, write func(io.Writer) error) ([]Part, error) {
	begin := s.size
	if err := write(s); err != nil {
		return parts, err
	}
	length := s.size - begin
	if n := len(parts); n > 0 && parts[n-1].offset+parts[n-1].length == begin {
		parts[n-1].length += length
		return parts, nil
	}
	return append(parts, Part{begin, length}), nil
}

// Copy writes parts to out.
func (s *Spool) Copy(out io.Writer, parts []Part) error {
	if s.file == nil {
		return nil
	}
	if err := s.buffer.Flush(); err != nil {
		return fmt.Errorf("hold parts of a report: %w", err)
	}
	for _, part := range parts {
		if _, err := io.Copy(out, io.NewSectionReader(s.file, part.offset, part.length)); err != nil {
			return err
		}
	}
	return nil
}

// Close drops what it holds.
func (s *Spool) Close() {
	if s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
}
