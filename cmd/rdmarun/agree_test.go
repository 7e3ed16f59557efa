package main

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"fmt"
	"html"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"rdmarun/host/output"
	"rdmarun/host/output/jsonl"
	"rdmarun/host/output/terminal"
	"rdmarun/host/record"
)

// agreeScenario has a case of each end, and figures.
const agreeScenario = `rdmarun: v1
provider: {soft: {clock: wall}}
roles: {server: {}, client: {}, broken: {guest: {module: trap.wasm}}}
defaults: {measure: {from: client, to: server}}
cases:
  - name: measured
    steps: [{name: bw, measure: {kind: bandwidth, op: SEND, sizes: [64KiB, 64, 4KiB], iterations: 100}, tags: {test: bw}}]
    thresholds: [{metric: "bandwidth{test=bw}", pass: [count > 0]}]
  - {name: none, steps: [{name: zero, measure: {kind: bandwidth, op: SEND, sizes: [4KiB], iterations: 1, min_messages: 0}}]}
  - {name: staged, steps: [{name: load, measure: {kind: bandwidth, op: SEND, sizes: [64], stages: [{for: 30ms, depth: 2}, {for: 30ms, depth: 8, name: deep}]}}]}
  - {name: skipped, requires: [transport.iwarp], steps: [{log: x}]}
  - {name: known, xfail: {reason: bug 1}, steps: [{assert: 1 == 2}]}
  - {name: a known step, steps: [{assert: 1 == 2, xfail: {reason: bug 2}}]}
  - name: the peer is killed
    steps:
      - parallel:
          - {measure: {kind: bandwidth, op: SEND, sizes: [64], duration: 10m}}
          - do: [{sleep: 50ms}, {kill: {role: server}}]
  - {name: the guest traps, steps: [{role: broken, guest: run}]}
  - name: looping
    steps:
      - {name: naps, repeat: 4, as: i, sleep: $(i * 2ms)}
      - {name: open, repeat: {for: 200ms, rate: 100/s}, sleep: 30ms}
  - name: too few
    steps:
      - name: scant
        measure: {kind: latency, op: SEND, sizes: [4KiB, 8KiB], iterations: 3, min_messages: 9}
        tags: {test: few}
    thresholds: [{metric: "latency{test=few}", pass: [p50 < 1h]}, {metric: duration, pass: [value < 1h]}]
  - name: too few as known
    xfail: {reason: bug 3, raises: {action: measure, what: client completed 3 messages of 4KiB}}
    steps:
      - name: scant
        measure: {kind: latency, op: SEND, sizes: [4KiB], iterations: 3, min_messages: 9}
        tags: {test: few}
    thresholds: [{metric: "latency{test=few}", pass: [p50 < 1h]}]
  - {name: slow, steps: [{log: x}], thresholds: [{metric: duration, pass: [value < 1ns]}]}
`

// seenRun is what an output has of a run: the ends of cases by their ids, the counts, and the figures that it has.
type seenRun struct {
	ends    map[string]string
	counts  map[string]int
	figures []string // "CASE NAME STAGE SIZE: MESSAGES, BANDWIDTH", sorted; "-" for what the output does not have
	loops   []string // as loopOf has them, sorted
	limits  []string // "CASE THRESHOLD: passed" or "failed", sorted
}

// TestOutputsAgree: every output has each case with the same end, the same counts, and the same figures.
func TestOutputsAgree(t *testing.T) {
	records := agreeRecords(t)
	want := seenByRecords(records)
	if len(want.ends) != 12 || len(want.figures) != 6 || len(want.loops) != 2 || len(want.limits) != 4 ||
		want.limits[2] != "too few as known latency{test=few} p50 < 1h: failed" ||
		want.limits[3] != "too few latency{test=few} p50 < 1h: failed" ||
		!strings.Contains(want.loops[0], "naps: 4 rounds, 1.00 s 2.00 s 3.00 s 4.00 s, 0 late, 0 dropped") ||
		want.figures[3] != "none zero  4KiB: 0, 0 bit/s" {
		t.Fatalf("the run has %+v", want)
	}
	texts := make(map[string]string)
	folder := t.TempDir()
	var screen bytes.Buffer
	outs := map[string]record.Consumer{"terminal": terminal.NewHuman(&screen, terminal.HumanOptions{})}
	for _, format := range []string{"junit", "tap", "html", "prom", "csv"} {
		out, err := output.Open(output.Target{Format: format, Path: filepath.Join(folder, format)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		outs[format] = out
	}
	for name, out := range outs {
		for _, each := range records {
			if out.Wants(each.Kind) {
				if err := out.Record(each); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
		}
		if file, is := out.(output.Output); is {
			if err := file.Close(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			text, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				t.Fatal(err)
			}
			texts[name] = string(text)
		}
	}
	for name, read := range map[string]func(*testing.T, string) seenRun{
		"terminal": seenByTerminal, "junit": seenByJUnit, "tap": seenByTAP, "html": seenByHTML, "prom": seenByProm,
		"csv": seenByCSV,
	} {
		t.Run(name, func(t *testing.T) {
			text := texts[name]
			if name == "terminal" {
				text = screen.String()
			}
			got := read(t, text)
			for id, end := range want.ends {
				if said, has := got.ends[id]; !has && !(name == "prom" && end == "skipped") ||
					has && !slices.Contains(strings.Split(said, "|"), end) {
					t.Errorf("%s is %q, not %q", id, said, end)
				}
			}
			for status, n := range want.counts {
				if said, has := got.counts[status]; has && said != n || !has && n > 0 && got.counts != nil {
					t.Errorf("%d %s, not %d: %v", said, status, n, got.counts)
				}
			}
			if slices.Sort(got.limits); !slices.Equal(got.limits, want.limits) {
				t.Errorf("thresholds %q, not %q", got.limits, want.limits)
			}
			if slices.Sort(got.loops); !slices.Equal(got.loops, want.loops) {
				t.Errorf("loops %q, not %q", got.loops, want.loops)
			}
			if got.figures == nil && (name == "junit" || name == "tap") {
				return // they have no figures
			}
			slices.Sort(got.figures)
			for i, figure := range want.figures {
				if i >= len(got.figures) || !alike(got.figures[i], figure) {
					t.Errorf("figures %q, not %q", got.figures, want.figures)
					break
				}
			}
			if len(got.figures) > len(want.figures) {
				t.Errorf("more figures: %q", got.figures)
			}
		})
	}
}

// alike compares two figures, of which the first may have "-" for messages.
func alike(got, want string) bool {
	if name, bandwidth, found := strings.Cut(got, ": -, "); found {
		ownName, rest, _ := strings.Cut(want, ": ")
		_, own, _ := strings.Cut(rest, ", ")
		return name == ownName && bandwidth == own
	}
	return got == want
}

// agreeRecords are those of a run.  One of its measurements has found nothing, as happens over a network.  One of its
// loops has times on a virtual clock.
func agreeRecords(t *testing.T) (records []*record.Record) {
	t.Helper()
	folder := t.TempDir()
	module, err := os.ReadFile(filepath.Join("..", "..", "host", "guest", "testdata", "trap.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"agree.yaml": []byte(agreeScenario), "trap.wasm": module} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.Command(ownProgram(t), "run", "agree.yaml", "-q", "-o", "jsonl=run.jsonl")
	run.Dir, run.Env = folder, append(os.Environ(), runAsRdmarun+"=1", "XDG_STATE_HOME="+folder)
	said, err := run.CombinedOutput()
	file, openErr := os.Open(filepath.Join(folder, "run.jsonl"))
	if openErr != nil {
		t.Fatalf("%v: %s", err, said)
	}
	defer file.Close()
	_, err = jsonl.Read(file, "run.jsonl", func(each *record.Record) error {
		kept := *each
		if kept.Kind == record.Measured && kept.Measure.Name == "zero" {
			kept.Measure.Messages, kept.Measure.Bytes, kept.Measure.BitsPerSecond, kept.Measure.MessagesPerSecond = 0,
				0, 0, 0
		}
		if kept.Kind == record.CaseEnd && len(kept.Result.Loops) > 0 {
			kept.Result.Loops[0].Clock = &record.Times{
				Min: time.Second, Median: 2 * time.Second, P99: 3 * time.Second, Max: 4 * time.Second,
			}
		}
		records = append(records, &kept)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// caseOf is the name of a case in its id.
func caseOf(id string) string { return strings.TrimPrefix(id, "agree.yaml::") }

func figureOf(id, name, stage string, size int64, messages string, bits float64) string {
	return fmt.Sprintf(
		"%s %s %s %s: %s, %s", caseOf(id), name, stage, terminal.Units{}.Bytes(size), messages, terminal.BitRate(bits),
	)
}

// loopOf is what an output says of a loop.  Times are as the terminal shows them.
func loopOf(id, name string, rounds, late, dropped int, times [4]string) string {
	return fmt.Sprintf(
		"%s %s: %d rounds, %s, %d late, %d dropped", caseOf(id), name, rounds, strings.Join(times[:], " "), late,
		dropped,
	)
}

// timesOf are the times of a loop in seconds, as the terminal shows them.
func timesOf(seconds ...float64) (times [4]string) {
	for i, each := range seconds {
		times[i] = terminal.Duration(time.Duration(math.Round(each * 1e9)))
	}
	return times
}

// loopLines are the loops in lines of a text, within their cases.
func loopLines(t *testing.T, id, text string) (loops []string) {
	for _, m := range regexp.MustCompile(
		`loop (\w+): (\d+) rounds, min ([^,]*), p50 ([^,]*), p99 ([^,]*), max (.*?) on the (?:virtual|wall) clock, `+
			`(\d+) late, (\d+) dropped`,
	).FindAllStringSubmatch(text, -1) {
		loops = append(
			loops, loopOf(id, m[1], integer(t, m[2]), integer(t, m[7]), integer(t, m[8]), [4]string(m[3:7])),
		)
	}
	return loops
}

// limitLines are the thresholds in lines of a text, within their cases.
func limitLines(id, text string) (limits []string) {
	for _, m := range regexp.MustCompile(
		`(?m)^\s*(?:- ")?threshold (passed|failed): (.*?): `,
	).FindAllStringSubmatch(text, -1) {
		limits = append(limits, limitOf(id, m[2], m[1]))
	}
	return limits
}

// limitOf is what an output says of a threshold.
func limitOf(id, text, status string) string {
	return fmt.Sprintf("%s %s: %s", caseOf(id), text, status)
}

// integer is a number in an output; an empty text is 0.
func integer(t *testing.T, text string) int {
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Error(err)
	}
	return n
}

func seenByRecords(records []*record.Record) seenRun {
	found := seenRun{ends: make(map[string]string), counts: make(map[string]int)}
	for _, each := range records {
		switch each.Kind {
		case record.CaseEnd:
			found.ends[caseOf(each.Case)] = string(each.Result.Status)
			found.counts[string(each.Result.Status)]++
			for _, loop := range each.Result.Loops {
				times := loop.OnClock()
				found.loops = append(found.loops, loopOf(
					each.Case, loop.Name, loop.Rounds, loop.Late, loop.Dropped, timesOf(
						times.Min.Seconds(), times.Median.Seconds(), times.P99.Seconds(), times.Max.Seconds(),
					),
				))
			}
		case record.Checked:
			status := map[bool]string{true: "passed", false: "failed"}[each.Threshold.OK]
			found.limits = append(found.limits, limitOf(each.Case, each.Threshold.Text, status))
		case record.Measured:
			m := each.Measure
			if m.Type == "latency" {
				continue // not in the figures, which are of bandwidth
			}
			found.figures = append(
				found.figures,
				figureOf(each.Case, m.Name, m.Tags[record.StageTag], m.Size, fmt.Sprint(m.Messages), m.BitsPerSecond),
			)
		}
	}
	slices.Sort(found.figures)
	slices.Sort(found.loops)
	slices.Sort(found.limits)
	return found
}

func seenByTerminal(t *testing.T, text string) seenRun {
	found := seenRun{ends: make(map[string]string), counts: make(map[string]int)}
	words := map[string]string{
		"PASS": "passed", "FAIL": "failed", "SKIP": "skipped", "XFAIL": "xfailed", "ERR ": "error",
	}
	end := regexp.MustCompile(`^(PASS|FAIL|SKIP|XFAIL|ERR )  (.*?)(?:  +[0-9.]+ \w+)?$`)
	row := regexp.MustCompile(
		`^      (bw|zero|load)(?:, depth \d+, stage=(\w+))? +([0-9]+(?:K?i?B)) +([0-9]+) +([0-9.]+ [GMk]?bit/s)`,
	)
	loop := regexp.MustCompile(
		`^      (\w+) +(\d+) rounds(?: on the virtual clock)?, min ([^,]*), p50 ([^,]*), p99 ([^,]*), max ([^;]*)` +
			`(?:; wall-clock p50 [^;]*)?(?:; (\d+) late[^;]*)?(?:; (\d+) dropped.*)?$`,
	)
	last := ""
	for line := range strings.SplitSeq(text, "\n") {
		if match := end.FindStringSubmatch(line); match != nil && !strings.Contains(match[2], "::") {
			last = match[2]
			found.ends[last] = words[match[1]]
		}
		if strings.HasPrefix(line, "      threshold") { // those in failures begin otherwise
			found.limits = append(found.limits, limitLines(last, line)...)
		}
		if m := loop.FindStringSubmatch(line); m != nil {
			found.loops = append(
				found.loops,
				loopOf(last, m[1], integer(t, m[2]), integer(t, m[7]), integer(t, m[8]), [4]string(m[3:7])),
			)
		}
		if match := row.FindStringSubmatch(line); match != nil {
			found.figures = append(
				found.figures,
				fmt.Sprintf("%s %s %s %s: %s, %s", last, match[1], match[2], match[3], match[4], match[5]),
			)
		}
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, match := range regexp.MustCompile(
		`(\d+) (passed|failed|xfailed|skipped|could not run)`,
	).FindAllStringSubmatch(lines[len(lines)-1], -1) {
		n, _ := strconv.Atoi(match[1])
		found.counts[strings.Replace(match[2], "could not run", "error", 1)] = n
	}
	return found
}

func seenByJUnit(t *testing.T, text string) seenRun {
	var suites struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Suites   []struct {
			Skipped int `xml:"skipped,attr"`
			Cases   []struct {
				Name       string `xml:"name,attr"`
				Properties []struct {
					Name  string `xml:"name,attr"`
					Value string `xml:"value,attr"`
				} `xml:"properties>property"`
				SystemOut               string `xml:"system-out"`
				Failure, Error, Skipped *struct {
					Message string `xml:"message,attr"`
				}
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	text = strings.NewReplacer(
		"<failure", "<Failure", "</failure", "</Failure", "<error ", "<Error ", "</error", "</Error", "<skipped",
		"<Skipped", "</skipped", "</Skipped",
	).Replace(text)
	if err := xml.Unmarshal([]byte(text), &suites); err != nil {
		t.Fatal(err)
	}
	found := seenRun{
		ends: make(map[string]string), counts: map[string]int{"failed": suites.Failures, "error": suites.Errors},
	}
	known := 0
	for _, each := range suites.Suites[0].Cases {
		status := ""
		for _, property := range each.Properties {
			if property.Name == "status" {
				status = property.Value
			}
		}
		element := map[bool]string{true: "failed", false: "passed"}[each.Failure != nil]
		if each.Error != nil {
			element = "error"
		}
		if each.Skipped != nil {
			element = "skipped"
			if strings.HasPrefix(each.Skipped.Message, "xfailed: ") {
				element = "xfailed"
				known++
			}
		}
		if element != status {
			t.Errorf("%s has the status %s, and is %s", each.Name, status, element)
		}
		found.ends[caseOf(each.Name)] = status
		found.loops = append(found.loops, loopLines(t, each.Name, each.SystemOut)...)
		found.limits = append(found.limits, limitLines(each.Name, each.SystemOut)...)
	}
	skipped := suites.Suites[0].Skipped
	found.counts["skipped"], found.counts["xfailed"] = skipped-known, known
	found.counts["passed"] = suites.Tests - suites.Failures - suites.Errors - skipped
	return found
}

func seenByTAP(t *testing.T, text string) seenRun {
	found := seenRun{ends: make(map[string]string)}
	for _, match := range regexp.MustCompile(
		`(?m)^(ok|not ok) \d+ - (.*?)(?: # (SKIP|TODO) .*)?$`,
	).FindAllStringSubmatch(text, -1) {
		end := map[string]string{
			"ok": "passed", "not ok": "failed|error", "okSKIP": "skipped", "not okTODO": "xfailed",
		}[match[1]+match[3]]
		found.ends[caseOf(match[2])] = end
	}
	for _, point := range regexp.MustCompile(`(?ms)^(?:not )?ok \d+ - ([^#\n]*?)(?: #[^\n]*)?\n(  ---\n.*?)^  \.\.\.$`).FindAllStringSubmatch(
		text, -1,
	) {
		found.loops = append(found.loops, loopLines(t, point[1], point[2])...)
		found.limits = append(found.limits, limitLines(point[1], point[2])...)
	}
	return found
}

func seenByHTML(t *testing.T, text string) seenRun {
	found := seenRun{ends: make(map[string]string), counts: make(map[string]int)}
	rows := regexp.MustCompile(
		`<tr><td>(bw|zero|load)<small>(?:[^<]*?stage=(\w+)|[^<]*)</small></td><td[^>]*>client</td><td[^>]*>([^<]*)</td><td[^>]*>([^<]*)</td><td[^>]*>([^<]*)</td>`,
	)
	limits := regexp.MustCompile(`<span class="pill \w+">(passed|failed)</span></td><td class="text"><code>([^<]*)</code>`)
	cell := regexp.MustCompile(`data-label="([^"]*)" class="n">([^<]*)`)
	loops := regexp.MustCompile(`<tr><td>(\w+)</td>(<td data-label="rounds".*?)</tr>`)
	text = strings.ReplaceAll(text, "\u202f", " ")
	for _, part := range strings.Split(text, `<details class="case"`)[1:] {
		match := regexp.MustCompile(`data-group="(\w+)" data-text="(\S+?::[^"]*)"`).FindStringSubmatch(part)
		if match == nil {
			t.Fatalf("a case without a name: %.200s", part)
		}
		id := regexp.MustCompile(`<span class="name">([^<]*)`).FindStringSubmatch(part)[1]
		name := html.UnescapeString(id)
		found.ends[name] = match[1]
		for _, m := range limits.FindAllStringSubmatch(part, -1) {
			found.limits = append(found.limits, limitOf(name, html.UnescapeString(m[2]), m[1]))
		}
		for _, loop := range loops.FindAllStringSubmatch(part, -1) {
			cells := make(map[string]string)
			for _, cell := range cell.FindAllStringSubmatch(loop[2], -1) {
				cells[cell[1]] = cell[2]
			}
			found.loops = append(found.loops, loopOf(
				name, loop[1], integer(t, cells["rounds"]), integer(t, cells["late"]), integer(t, cells["dropped"]),
				[4]string{cells["min"], cells["p50"], cells["p99"], cells["max"]},
			))
		}
		for _, row := range rows.FindAllStringSubmatch(part, -1) {
			found.figures = append(
				found.figures, fmt.Sprintf("%s %s %s %s: %s, %s", name, row[1], row[2], row[3], row[4], row[5]),
			)
		}
	}
	for _, match := range regexp.MustCompile(
		`<b>(\d+)</b> (passed|failed|xfailed|skipped|error)`,
	).FindAllStringSubmatch(
		text, -1,
	) {
		n, _ := strconv.Atoi(match[1])
		found.counts[match[2]] = n
	}
	return found
}

func seenByProm(t *testing.T, text string) seenRun {
	found := seenRun{ends: make(map[string]string), counts: make(map[string]int)}
	label := func(line, name string) string {
		match := regexp.MustCompile(`[{,]` + name + `="([^"]*)"`).FindStringSubmatch(line)
		if match == nil {
			return ""
		}
		return match[1]
	}
	rounds, times := make(map[[2]string]map[string]int), make(map[[2]string]map[string]float64)
	for line := range strings.SplitSeq(text, "\n") {
		name, _, _ := strings.Cut(line, "{")
		value, _ := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		switch id := label(line, "case"); name {
		case "rdmarun_case_ok":
			found.ends[caseOf(id)] = map[bool]string{true: "passed|xfailed", false: "failed|error"}[value == 1]
		case "rdmarun_run_cases":
			found.counts[label(line, "status")] = int(value)
		case "rdmarun_threshold_ok":
			status := map[bool]string{true: "passed", false: "failed"}[value == 1]
			found.limits = append(found.limits, limitOf(id, label(line, "threshold"), status))
		case "rdmarun_loop_rounds":
			of := [2]string{id, label(line, "loop")}
			if rounds[of] == nil {
				rounds[of] = make(map[string]int)
			}
			rounds[of][label(line, "status")] = int(value)
		case "rdmarun_loop_round_seconds":
			of := [2]string{id, label(line, "loop")}
			if times[of] == nil {
				times[of] = make(map[string]float64)
			}
			times[of][label(line, "of")] = value
		case "rdmarun_bandwidth_bits_per_second":
			size, _ := strconv.ParseInt(label(line, "size"), 10, 64)
			found.figures = append(
				found.figures, figureOf(id, label(line, "test"), label(line, "tag_stage"), size, "-", value),
			)
		}
	}
	for of, n := range rounds {
		found.loops = append(found.loops, loopOf(
			of[0], of[1], n["ran"], n["late"], n["dropped"],
			timesOf(times[of]["min"], times[of]["p50"], times[of]["p99"], times[of]["max"]),
		))
	}
	return found
}

func seenByCSV(t *testing.T, text string) seenRun {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	found := seenRun{ends: make(map[string]string), counts: make(map[string]int)}
	for _, row := range rows[1:] {
		cell := func(name string) string { return row[slices.Index(rows[0], name)] }
		switch cell("kind") {
		case "case":
			found.ends[caseOf(cell("case"))] = cell("status")
			found.counts[cell("status")]++
		case "threshold":
			found.limits = append(found.limits, limitOf(cell("case"), cell("name"), cell("status")))
		case "loop":
			var seconds []float64
			for _, column := range []string{"t_min_us", "t_typical_us", "t_99_us", "t_max_us"} {
				us, err := strconv.ParseFloat(cell(column), 64)
				if err != nil {
					t.Errorf("%v: %v", row, err)
				}
				seconds = append(seconds, us/1e6)
			}
			found.loops = append(found.loops, loopOf(
				cell("case"), cell("name"), integer(t, cell("iterations")), integer(t, cell("late")),
				integer(t, cell("dropped")), timesOf(seconds...),
			))
		case "measure":
			if cell("type") == "latency" {
				continue
			}
			size, _ := strconv.ParseInt(cell("size"), 10, 64)
			gbps, err := strconv.ParseFloat(cell("bw_average_gbps"), 64)
			if err != nil {
				t.Errorf("%v: %v", row, err)
			}
			_, stage, _ := strings.Cut(cell("tags"), "stage=")
			found.figures = append(
				found.figures, figureOf(cell("case"), cell("name"), stage, size, cell("iterations"), gbps*1e9),
			)
		}
	}
	return found
}
