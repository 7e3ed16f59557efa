package wasm

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// vlq writes a number as a source map does.
func vlq(value int64) string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	rest := value << 1
	if value < 0 {
		rest = -value<<1 | 1
	}
	for text := ""; ; rest >>= 5 {
		if rest < 32 {
			return text + string(digits[rest])
		}
		text += string(digits[rest&31|32])
	}
}

// mapOf is a source map of segments.
func mapOf(sources []string, segments []segment) string {
	var texts []string
	var last segment
	for _, each := range segments {
		text := vlq(each.column - last.column)
		if each.mapped {
			text += vlq(each.source-last.source) + vlq(each.line-last.line) + vlq(each.sourceColumn-last.sourceColumn)
		} else {
			each.source, each.line, each.sourceColumn = last.source, last.line, last.sourceColumn
		}
		texts, last = append(texts, text), each
	}
	text, err := json.Marshal(map[string]any{
		"version": 3, "sources": sources, "names": []string{}, "mappings": strings.Join(texts, ","),
	})
	if err != nil {
		panic(err) // strings and numbers
	}
	return string(text)
}

// TestSourceMap looks for columns of a map with known segments; functions begin at 10, 30 and 50.
func TestSourceMap(t *testing.T) {
	text := mapOf([]string{"a.ts", "~lib/b.ts"}, []segment{
		{column: 12, source: 0, line: 4, sourceColumn: 2, mapped: true},
		{column: 20, source: 1, line: 70000, sourceColumn: 0, mapped: true},
		{column: 24},
		{column: 35, source: 0, line: 0, sourceColumn: 1000, mapped: true},
	})
	source, err := parseSourceMap([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := map[uint64]string{
		5: "", 11: "", 12: "a.ts:5:3", 19: "a.ts:5:3", 20: "~lib/b.ts:70001:1", 23: "~lib/b.ts:70001:1", 24: "", 29: "",
		30: "", 34: "", 35: "a.ts:1:1001", 49: "a.ts:1:1001", 50: "", 1 << 40: "",
	}
	var columns []uint64
	for column := range want { // in any order
		columns = append(columns, column)
	}
	found := source.find(columns, func(column uint64) uint64 {
		begins := []uint64{50, 30, 10}
		at := slices.IndexFunc(begins, func(begin uint64) bool { return begin <= column })
		if at < 0 {
			return column + 1
		}
		return begins[at]
	})
	for i, column := range columns {
		if found[i] != want[column] {
			t.Errorf("column %d is %q, want %q", column, found[i], want[column])
		}
	}
}

// hostileMaps are texts that no compiler writes.
var hostileMaps = []string{
	"", "null", "{}", `{"version":2,"sources":[],"mappings":""}`, `{"version":3}`,
	`{"version":3,"sources":{},"mappings":""}`, `{"version":3,"sources":[1],"mappings":""}`,
	`{"version":3,"sources":["a"],"mappings":"AAAA,!!!!"}`,                      // no digits
	`{"version":3,"sources":["a"],"mappings":"gggggggggggggggggggggA"}`,         // a number without an end
	`{"version":3,"sources":["a"],"mappings":"ACAA"}`,                           // a source that is not there
	`{"version":3,"sources":["a"],"mappings":"ADAA"}`,                           // one below 0
	`{"version":3,"sources":[null,""],"mappings":"AAAA,CCAA"}`,                  // without names
	`{"version":3,"sources":["a"],"mappings":"UAAA,DAAA,UAAA"}`,                 // columns that go back
	`{"version":3,"sources":["a"],"mappings":"AA,AAA,AAAAAA"}`,                  // of two, three and six numbers
	`{"version":3,"sources":["a"],"mappings":"+/////DAAA,+/////DAAA,+/////DA"}`, // beyond 32 bits
	`{"version":3,"sources":["a"],"mappings":",,,,;;;;AAAA"}`,                   // nothing in the first line
}

func TestSourceMapsAreBounded(t *testing.T) {
	begin := func(uint64) uint64 { return 0 }
	for _, text := range hostileMaps {
		source, err := parseSourceMap([]byte(text))
		if err != nil {
			continue
		}
		for _, place := range source.find([]uint64{0, 5, 1 << 62}, begin) {
			if place != "" && place != "a:1:1" {
				t.Errorf("%s: %q", text, place)
			}
		}
	}
	long := strings.Repeat("x", maxFileName*4)
	source, err := parseSourceMap([]byte(mapOf([]string{long}, []segment{{mapped: true}})))
	if err != nil {
		t.Fatal(err)
	}
	if place := source.find([]uint64{3}, begin)[0]; len(place) > maxFileName+16 {
		t.Errorf("a name of %d bytes", len(place))
	}
	for name, text := range map[string]string{
		"sources": `{"version":3,"sources":["` + strings.Repeat(`","`, maxSources/3+1) + `"],"mappings":""}`,
		"size":    `{"version":3,"sources":[],"mappings":"` + strings.Repeat("A", MaxSourceMap) + `"}`,
	} {
		if _, err := parseSourceMap([]byte(text)); err == nil {
			t.Errorf("%s: a map of %d bytes is read", name, len(text))
		}
	}
	if with := (&Lines{}).WithSourceMap([]byte("no map")); with.source != nil || with.Find([]uint64{1})[0] != "" {
		t.Error("a text that is no map has lines")
	}
}

// FuzzSourceMap reads any text, and compares a map that is made of segments with a search through these.
func FuzzSourceMap(f *testing.F) {
	for _, text := range hostileMaps {
		f.Add(text, []byte{}, uint64(3))
	}
	f.Add(
		mapOf([]string{"a"}, []segment{{column: 3, mapped: true}}), []byte{1, 2, 3, 0, 9, 1, 1, 0, 7, 2, 2, 255},
		uint64(40),
	)
	f.Add("", []byte{1, 2, 3, 1}, uint64(math.MaxUint64)) // beyond every segment
	f.Fuzz(func(t *testing.T, text string, changes []byte, column uint64) {
		everywhere := func(uint64) uint64 { return 0 }
		if source, err := parseSourceMap([]byte(text)); err == nil {
			for _, place := range source.find([]uint64{column, 0, column / 2}, everywhere) {
				if len(place) > maxFileName+32 {
					t.Errorf("a place of %d bytes", len(place))
				}
			}
		}
		names := []string{"a", "b", "c"}
		var segments []segment
		var at int64
		for ; len(changes) >= 4; changes = changes[4:] {
			at += int64(changes[0])
			segments = append(segments, segment{
				at, int64(changes[1] % 3), int64(changes[2]) << 8, int64(changes[3]), changes[3]%5 != 0,
			})
		}
		source, err := parseSourceMap([]byte(mapOf(names, segments)))
		if err != nil {
			t.Fatal(err)
		}
		want := ""
		for _, each := range segments {
			if uint64(each.column) <= column {
				want = ""
				if each.mapped {
					want = fmt.Sprintf("%s:%d:%d", names[each.source], each.line+1, each.sourceColumn+1)
				}
			}
		}
		if found := source.find([]uint64{column}, everywhere)[0]; found != want {
			t.Errorf("column %d is %q, want %q", column, found, want)
		}
	})
}
