package jsonl

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"rdmarun/host/record"
)

// MaxLine bounds one record.  The longest are ends of cases with many failures: some KiB.
const MaxLine = 16 << 20

// Read reads records one by one and passes each to take, which must not keep it.  torn tells that the last
// line has no end, as a killed run may leave it; that line is not passed on.  Errors name the line.
func Read(in io.Reader, name string, take func(*record.Record) error) (torn bool, err error) {
	reader := bufio.NewReaderSize(in, 1<<16)
	var line []byte
	begun := false
	for number := 1; ; number++ {
		line, err = readLine(reader, line[:0])
		if errors.Is(err, io.EOF) {
			return len(line) > 0, nil
		}
		if err != nil {
			return false, fmt.Errorf("%s:%d: %w", name, number, err)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		r, err := parse(line)
		if err != nil {
			return false, fmt.Errorf("%s:%d: %w", name, number, err)
		}
		if r.Kind == record.RunStart && begun {
			// Plans, totals and environments of two runs do not add up to one report.
			return false, fmt.Errorf("%s:%d: another run begins here, and a file has the records of one", name, number)
		}
		begun = begun || r.Kind == record.RunStart
		if err := take(r); err != nil {
			return false, err
		}
	}
}

// readLine reads a line with its end; at the end of the file it returns what there is and io.EOF.
func readLine(reader *bufio.Reader, line []byte) ([]byte, error) {
	for {
		part, err := reader.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
		if len(line) > MaxLine {
			return nil, fmt.Errorf("a line longer than %d MiB: this is no file of records", MaxLine>>20)
		}
	}
}

func parse(line []byte) (*record.Record, error) {
	r := &record.Record{}
	if err := json.Unmarshal(line, r); err != nil {
		return nil, fmt.Errorf("this is no record (the file is made by \"rdmarun run --out jsonl=FILE\"): %w", err)
	}
	switch {
	case r.Version == 0:
		return nil, errors.New("a record without \"v\", its version: the file is made by \"rdmarun run --out jsonl=FILE\"")
	case r.Version > record.Version:
		return nil, fmt.Errorf("a record of version %d, and this rdmarun reads up to %d: use the rdmarun that wrote it",
			r.Version, record.Version)
	}
	return r, complete(r)
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
