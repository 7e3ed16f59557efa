// Package jsonl writes and reads the record of truth: one record a line, as JSON.
package jsonl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"rdmarun/host/ownfile"
	"rdmarun/host/record"
)

// Writer writes each record as it comes, with one write(2) a line.  So however this process ends, the
// file has whole lines, but for at most the last.
type Writer struct {
	name    string
	out     io.Writer
	file    *os.File // nil for what the caller closes
	encoder *json.Encoder
	line    bytes.Buffer
	whole   int64 // bytes of whole lines
	begun   bool
}

// Create begins a file of records.  What is there goes with the first record, not before: a run that cannot begin
// leaves the records of the last one.
func Create(name string) (*Writer, error) {
	file, err := ownfile.Open(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, ownfile.Shared)
	if err != nil {
		return nil, fmt.Errorf("write the records: %w", err)
	}
	w := To(file, name)
	w.file = file
	return w, nil
}

// Append goes on with the records that another process has left, behind its last whole line.
func Append(name string) (*Writer, error) {
	file, err := ownfile.Open(name, os.O_RDWR|os.O_APPEND, ownfile.Shared)
	if err != nil {
		return nil, fmt.Errorf("write the records: %w", err)
	}
	w := To(file, name)
	w.file, w.begun = file, true
	if !w.regular() {
		return w, nil
	}
	if w.whole, err = wholeLines(file); err == nil {
		err = file.Truncate(w.whole)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write the records %s: %w", name, err), file.Close())
	}
	return w, nil
}

// wholeLines is how many bytes of a file end with its last line end.
func wholeLines(file *os.File) (int64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	var part [4096]byte
	for end := info.Size(); end > 0; {
		begin := max(0, end-int64(len(part)))
		if _, err := file.ReadAt(part[:end-begin], begin); err != nil {
			return 0, err
		}
		if last := bytes.LastIndexByte(part[:end-begin], '\n'); last >= 0 {
			return begin + int64(last) + 1, nil
		}
		end = begin
	}
	return 0, nil
}

// To writes records to out, which stays open.
func To(out io.Writer, name string) *Writer {
	w := &Writer{name: name, out: out}
	w.encoder = json.NewEncoder(&w.line)
	w.encoder.SetEscapeHTML(false)
	return w
}

// Wants implements record.Consumer: everything.
func (w *Writer) Wants(record.Kind) bool { return true }

// Record implements record.Consumer.
func (w *Writer) Record(r *record.Record) error {
	w.line.Reset()
	if err := w.encoder.Encode(r); err != nil {
		return fmt.Errorf("write the records %s: %w", w.name, err)
	}
	if err := w.begin(); err != nil {
		return fmt.Errorf("write the records %s: %w", w.name, err)
	}
	if _, err := w.out.Write(w.line.Bytes()); err != nil {
		w.cut()
		return fmt.Errorf("write the records %s, which end here: %w", w.name, err)
	}
	w.whole += int64(w.line.Len())
	return nil
}

// begin empties a file that was there before.
func (w *Writer) begin() error {
	if w.begun || !w.regular() {
		return nil
	}
	w.begun = true
	return w.file.Truncate(0)
}

// regular reports whether there is a file that has a length.
func (w *Writer) regular() bool {
	if w.file == nil {
		return false
	}
	info, err := w.file.Stat()
	return err == nil && info.Mode().IsRegular()
}

// cut takes back the part of a line that a full disk had room for.
func (w *Writer) cut() {
	if w.regular() {
		_ = w.file.Truncate(w.whole) // a reader skips a torn last line anyway
	}
}

// Close ends the file.
func (w *Writer) Close() error {
	if w.file == nil {
		return nil
	}
	if err := w.file.Close(); err != nil {
		return fmt.Errorf("write the records %s: %w", w.name, err)
	}
	return nil
}
