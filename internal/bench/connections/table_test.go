package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const cmtimePrints = `creating id
resolving address
step              total ms     max ms     min us  us / conn
create id    :        2.00       0.35       6.00      24.50
bind addr    :        9.00       0.35       6.00      24.50
resolve addr :       25.69      23.60   10179.00     256.91
resolve route:       14.24       4.36     489.00     142.43
create qp    :       72.89      11.71     186.00     728.88
connect      :      843.10     784.84  195449.00    8430.99
disconnect   :      365.80     192.64   19210.00    3658.01
destroy      :        3.08       0.56      10.00      30.83
`

func TestReadCmtime(t *testing.T) {
	found, err := readCmtime(strings.NewReader(cmtimePrints))
	if err != nil {
		t.Fatal(err)
	}
	if found["create_id"] != 2*time.Millisecond || found["connect"] != 843100*time.Microsecond {
		t.Errorf("%v", found)
	}
	if sum := found.sum(steps); sum.Round(10*time.Microsecond) != 1326800*time.Microsecond {
		t.Errorf("all steps: %s; binding is not one of them", sum)
	}
	_, err = readCmtime(strings.NewReader("create id    :        2.00\n"))
	if err == nil || !strings.Contains(err.Error(), "resolve_addr: this version of cmtime") {
		t.Errorf("%v", err)
	}
}

// recordOf is a record of a measurement in which each step took that many milliseconds.
func recordOf(milliseconds int) string {
	var parts []string
	for _, step := range steps {
		parts = append(parts, `{"of":"`+step+`","took_ns":`+strconv.Itoa(milliseconds)+`000000}`)
	}
	return `{"v":1,"kind":"measure","measure":{"type":"connect","messages":10,"latency":[` +
		strings.Join(parts, ",") + "]}}\n"
}

// cmtimeOf is what cmtime prints when each step took that many milliseconds.
func cmtimeOf(milliseconds int) string {
	var lines strings.Builder
	for _, step := range steps {
		lines.WriteString(strings.ReplaceAll(step, "_", " ") + " :  " + strconv.Itoa(milliseconds) + ".00  1.00\n")
	}
	return lines.String()
}

// TestRounds holds the ratio of neighbours against one of the medians: a machine that slows down changes both alike.
func TestRounds(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := readRounds(folder); err == nil {
		t.Error("an empty folder has rounds")
	}
	for i, took := range [][2]int{{10, 11}, {20, 22}, {30, 33}, {100, 50}, {400, 440}} {
		write("cmtime."+strconv.Itoa(i+1), cmtimeOf(took[0]))
		write("rdmarun."+strconv.Itoa(i+1)+".jsonl", recordOf(took[1]))
	}
	rounds, err := readRounds(folder)
	if err != nil || len(rounds) != 5 || rounds[0].connections != 10 {
		t.Fatalf("%+v %v", rounds, err)
	}
	all := rows()[len(rows())-1]
	// Seven steps of 30 ms, ten connections.
	if f := all.figures(rounds); f.theirs != 21000 || f.ours != 23100 || f.ratio < 1.09 || f.ratio > 1.11 {
		t.Errorf("%+v", f)
	}
	var text strings.Builder
	if printTable(&text, rounds) || !strings.Contains(text.String(), "MISSED") {
		t.Errorf("1.10 is past the mark:\n%s", text.String())
	}
	if !printTable(&text, rounds[3:4]) {
		t.Errorf("0.50 is within the mark:\n%s", text.String())
	}
	if title := rows()[0].title; title != "create id" {
		t.Errorf("%q", title)
	}
}
