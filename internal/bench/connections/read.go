package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"time"

	"rdmarun/host/output/jsonl"
	"rdmarun/host/record"
)

// steps are those of a connection, by the names of the records; cmtime's have a space for the underscore.
var steps = []string{"create_id", "resolve_addr", "resolve_route", "create_qp", "connect", "disconnect", "destroy"}

// times are how long each step of all connections took, by its name.
type times map[string]time.Duration

// round is one run of each program.
type round struct {
	theirs, ours times
	connections  int
}

// cmtimeLine is a step with its "total ms", as cmtime prints it up to rdma-core 50 at least.  Later ones make their
// queue pairs by themselves and have other steps.
var cmtimeLine = regexp.MustCompile(`^([a-z]+)(?: ([a-z]+))? *: +([0-9.]+)`)

// readCmtime reads what cmtime prints.
func readCmtime(in io.Reader) (times, error) {
	found := times{}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		parts := cmtimeLine.FindStringSubmatch(lines.Text())
		if parts == nil {
			continue
		}
		name := parts[1]
		if parts[2] != "" {
			name += "_" + parts[2]
		}
		milliseconds, err := strconv.ParseFloat(parts[3], 64)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", lines.Text(), err)
		}
		found[name] = time.Duration(milliseconds * float64(time.Millisecond))
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return found, complete(found, "this version of cmtime takes other steps")
}

// readRecords reads what a measure step in lockstep has found.
func readRecords(in io.Reader, name string) (found times, connections int, err error) {
	found = times{}
	_, err = jsonl.Read(in, name, func(r *record.Record) error {
		if r.Kind != record.Measured {
			return nil
		}
		connections = int(r.Measure.Messages)
		for _, each := range r.Measure.Latency {
			found[each.Of] = each.Took
		}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	return found, connections, complete(found, "was it measured in lockstep?")
}

// complete reports which step has no time.
func complete(found times, hint string) error {
	for _, step := range steps {
		if found[step] <= 0 {
			return fmt.Errorf("no time of step %s: %s", step, hint)
		}
	}
	return nil
}
