package jsonl

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"

	"rdmarun/host/record"
)

// maxLine bounds one record.  The longest are ends of cases with many failures: some KiB.
const maxLine = 16 << 20

// FormatError means that a line is not what a run writes.
type FormatError struct {
	Name   string // of the file
	Line   int
	Column int // in bytes, from 1; 0 where the line as a whole is wrong
	Err    error
}

func (e *FormatError) Error() string {
	if e.Column > 0 {
		return fmt.Sprintf("%s:%d:%d: %v", e.Name, e.Line, e.Column, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.Name, e.Line, e.Err)
}

func (e *FormatError) Unwrap() error { return e.Err }

// Read reads records one by one and passes each to take, which must not keep it.  torn means that the last line has no
// end, as a killed run may leave it; that line is not passed on.  A line that is not a record is a FormatError.
func Read(in io.Reader, name string, take func(*record.Record) error) (torn bool, err error) {
	reader := bufio.NewReaderSize(in, 1<<16)
	var line []byte
	begun := false
	for number := 1; ; number++ {
		line, err = readLine(reader, line[:0])
		switch {
		case errors.Is(err, io.EOF):
			return len(line) > 0, nil
		case errors.Is(err, errLongLine):
			return false, &FormatError{Name: name, Line: number, Err: err}
		case err != nil:
			return false, fmt.Errorf("%s:%d: %w", name, number, err)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		r, column, err := parse(line)
		if err != nil {
			return false, &FormatError{name, number, column, err}
		}
		if r.Kind == record.RunStart && begun {
			// Plans, totals and environments of two runs do not add up to one report.
			return false, &FormatError{
				Name: name, Line: number, Err: errors.New("another run begins here, and a file has the records of one"),
			}
		}
		begun = begun || r.Kind == record.RunStart
		if err := take(r); err != nil {
			return false, err
		}
	}
}

var errLongLine = fmt.Errorf("a line longer than %dMiB: this is not a file of records", maxLine>>20)

// readLine reads a line with its end; at the end of the file it returns what there is and io.EOF.
func readLine(reader *bufio.Reader, line []byte) ([]byte, error) {
	for {
		part, err := reader.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
		if len(line) > maxLine {
			return nil, errLongLine
		}
	}
}

// parse makes a record of a line; column is where the line is wrong, if that is at one place.
func parse(line []byte) (r *record.Record, column int, err error) {
	r = &record.Record{}
	if err := json.Unmarshal(line, r); err != nil {
		return nil, columnOf(err), wrong(line, err)
	}
	switch {
	case r.Version == 0:
		return nil, 0, errors.New(`the record has no "v", the version of its format`)
	case r.Version > record.Version:
		return nil, 0, fmt.Errorf("a record of version %d, and this rdmarun reads up to %d: use the rdmarun that "+
			"wrote it",
			r.Version, record.Version)
	}
	return r, 0, complete(r)
}

// columnOf is where encoding/json stopped; 0 where the error has no position.
func columnOf(err error) int {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return int(syntax.Offset)
	}
	return 0
}

// wrong translates an error of encoding/json from the words of Go to those of JSON.
func wrong(line []byte, err error) error {
	var (
		syntax *json.SyntaxError
		value  *json.UnmarshalTypeError
	)
	switch {
	case errors.As(err, &syntax):
		at := max(0, int(syntax.Offset)-1)
		if text := bytes.TrimRight(line, "\r\n"); at < len(text) {
			found, _ := utf8.DecodeRune(text[at:])
			return fmt.Errorf("this is not JSON: %q cannot be here", found)
		}
		return errors.New("this is not JSON: the line ends within a value")
	case errors.As(err, &value) && value.Field == "":
		return fmt.Errorf("the line is a JSON %s; a record must be an object", value.Value)
	case errors.As(err, &value):
		found, _, _ := strings.Cut(value.Value, " ") // of numbers with the number
		if found == "bool" {
			found = "boolean"
		}
		return fmt.Errorf("%q is a JSON %s; in a record it must be %s", value.Field, found, jsonWord(value.Type))
	}
	return fmt.Errorf("this is not a record: %w", err)
}

// jsonWord is what the values of a type are in JSON.
func jsonWord(of reflect.Type) string {
	switch of.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map, reflect.Pointer:
		return "an object"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("an integer from 0 of at most %d bits", of.Bits())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("an integer of at most %d bits", of.Bits())
	}
	return "a number"
}

// complete checks that the part is there that belongs to the kind.  Kinds that are not known here are of a
// newer rdmarun, which kept the version because readers may pass over them.
func complete(r *record.Record) error {
	var there bool
	switch r.Kind {
	case record.RunStart:
		there = r.Run != nil
	case record.DeviceUsed:
		there = r.Device != nil
	case record.CaseStart:
		there = r.Start != nil
	case record.StepEnd:
		there = r.Step != nil
	case record.Output:
		there = r.Line != nil
	case record.Measured, record.Before:
		there = r.Measure != nil
	case record.Meshed:
		there = r.Mesh != nil
	case record.Checked:
		there = r.Threshold != nil
	case record.CaseEnd, record.CaseRetry:
		there = r.Result != nil
	case record.RunEnd:
		there = r.Totals != nil
	default:
		there = true
	}
	if !there {
		return fmt.Errorf("a record %q lacks what belongs to it", r.Kind)
	}
	return nil
}
