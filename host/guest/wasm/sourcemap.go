package wasm

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// sourceMap is a source map (ECMA-426, version 3) of a module. Its one generated line is the file, and its columns are
// offsets in the file. The compiler of AssemblyScript makes such maps, and no DWARF.
//
// The map is as untrusted as the module. Its size and its numbers have bounds, and one pass over it finds all places.
type sourceMap struct {
	sources  []string
	mappings string
}

// MaxSourceMap is how long a source map may be, in bytes.
const MaxSourceMap = 16 << 20

// maxSources is how long the names of its sources may be together, in bytes of JSON.
const maxSources = 1 << 20

var errSourceMap = errors.New("not a source map of version 3")

func parseSourceMap(text []byte) (*sourceMap, error) {
	var read struct {
		Version  int             `json:"version"`
		Sources  json.RawMessage `json:"sources"`
		Mappings string          `json:"mappings"`
	}
	if len(text) > MaxSourceMap {
		return nil, fmt.Errorf("the source map has more than %d bytes", MaxSourceMap)
	}
	if err := json.Unmarshal(text, &read); err != nil || read.Version != 3 || len(read.Sources) > maxSources {
		return nil, errSourceMap
	}
	s := &sourceMap{mappings: read.Mappings}
	if err := json.Unmarshal(read.Sources, &s.sources); err != nil {
		return nil, errSourceMap
	}
	return s, nil
}

// segment is where the code from a column on comes from, up to the next one's column.
type segment struct {
	column, source, line, sourceColumn int64
	mapped                             bool // else the code comes from no source
}

// find gives the source of columns. begin is where the function of a column begins: a segment before it is another
// function's.
func (s *sourceMap) find(columns []uint64, begin func(column uint64) uint64) []string {
	order := make([]int, len(columns))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(columns[a], columns[b]) })
	found := make([]string, len(columns))
	var last segment
	passed := func(here func(column uint64) bool) {
		for ; len(order) > 0 && here(columns[order[0]]); order = order[1:] {
			column := columns[order[0]]
			if last.mapped && uint64(last.column) >= begin(column) {
				found[order[0]] = s.location(last)
			}
		}
	}
	for rest := s.mappings; ; {
		next, after, more := readSegment(last, rest)
		if !more {
			break
		}
		if next.column < last.column {
			return found // no map of a module
		}
		passed(func(column uint64) bool { return column < uint64(next.column) })
		last, rest = next, after
	}
	passed(func(uint64) bool { return true })
	return found
}

// location is a segment as people write it.
func (s *sourceMap) location(of segment) string {
	if of.source < 0 || of.source >= int64(len(s.sources)) || s.sources[of.source] == "" {
		return ""
	}
	name := s.sources[of.source]
	if len(name) > maxFileName {
		name = "..." + name[len(name)-maxFileName:]
	}
	return name + ":" + strconv.FormatInt(of.line+1, 10) + ":" + strconv.FormatInt(of.sourceColumn+1, 10)
}

// readSegment reads the segment at the beginning of a text; false at the end of the first line, and where there is
// none.
func readSegment(last segment, text string) (next segment, rest string, ok bool) {
	next = last
	fields := [...]*int64{&next.column, &next.source, &next.line, &next.sourceColumn, new(int64)}
	count := 0
	for len(text) > 0 && text[0] != ',' && text[0] != ';' {
		var change int64
		if change, text, ok = readVLQ(text); !ok || count == len(fields) {
			return last, "", false
		}
		if *fields[count] += change; *fields[count] < 0 && count < len(fields)-1 || *fields[count] > math.MaxUint32 {
			return last, "", false
		}
		count++
	}
	if len(text) > 0 && text[0] == ',' {
		text = text[1:]
	}
	next.mapped = count >= 4
	return next, text, count == 1 || next.mapped
}

// maxDigits is how many digits a number of 32 bits and a sign has.
const maxDigits = 7

// readVLQ reads a number: digits of base 64 with five bits each, the lowest first, and the sign in the lowest bit.
func readVLQ(text string) (value int64, rest string, ok bool) {
	for i := range min(len(text), maxDigits) {
		digit := base64Digit(text[i])
		if digit < 0 {
			return 0, "", false
		}
		value |= (digit & 31) << (5 * i)
		if digit < 32 {
			if value&1 != 0 {
				return -(value >> 1), text[i+1:], true
			}
			return value >> 1, text[i+1:], true
		}
	}
	return 0, "", false
}

func base64Digit(c byte) int64 {
	switch {
	case 'A' <= c && c <= 'Z':
		return int64(c - 'A')
	case 'a' <= c && c <= 'z':
		return int64(c-'a') + 26
	case '0' <= c && c <= '9':
		return int64(c-'0') + 52
	case c == '+':
		return 62
	case c == '/':
		return 63
	}
	return -1
}
