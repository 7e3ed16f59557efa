package check

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"rdmarun/host/check/finding"
	"rdmarun/host/printable"
)

// WriteText writes findings for people. Hints are left out unless they are asked for; a last line counts all of them.
func WriteText(out io.Writer, found []Finding, hints bool) error {
	var text strings.Builder
	count := map[finding.Level]int{}
	for _, each := range found {
		count[each.Level]++
		if each.Level == finding.Hint && !hints {
			continue
		}
		writeFinding(&text, each)
	}
	text.WriteString(Summary(found))
	if count[finding.Hint] > 0 && !hints {
		text.WriteString(" (--hints shows hints)")
	}
	text.WriteByte('\n')
	_, err := io.WriteString(out, printable.Text(text.String()))
	return err
}

func writeFinding(text *strings.Builder, each Finding) {
	fmt.Fprintf(text, "%s[%s]: %s\n", each.Level, each.Name, each.What)
	writePlace(text, "at", each.Call)
	for _, place := range each.Related {
		writePlace(text, "see", place)
	}
	if each.Count > 1 {
		fmt.Fprintf(text, "  = %d times\n", each.Count)
	}
	fmt.Fprintf(text, "  = why: %s (%s)\n", each.Meaning, each.Source)
	fmt.Fprintf(text, "  = hint: %s\n\n", each.Remedy)
}

func writePlace(text *strings.Builder, word string, place Place) {
	fmt.Fprintf(text, "  %-4s%s  %s\n", word, place.Site.Location(), place.What)
}

// Summary counts findings by level.
func Summary(found []Finding) string {
	count := map[finding.Level]int{}
	for _, each := range found {
		count[each.Level]++
	}
	var parts []string
	for _, level := range []finding.Level{finding.Error, finding.Warning, finding.Hint} {
		if n := count[level]; n == 1 {
			parts = append(parts, fmt.Sprintf("1 %s", level))
		} else {
			parts = append(parts, fmt.Sprintf("%d %ss", n, level))
		}
	}
	return strings.Join(parts, ", ")
}

// Worst is the worst level; Hint if there are no findings.
func Worst(found []Finding) finding.Level {
	worst := finding.Hint
	for _, each := range found {
		worst = min(worst, each.Level)
	}
	return worst
}

// place is a Place in JSON.
type place struct {
	What     string `json:"what"`
	Function string `json:"function,omitempty"`
	Source   string `json:"source,omitempty"`
	Line     int    `json:"line,omitempty"`
	Binary   string `json:"binary,omitempty"`
	Offset   uint64 `json:"offset,omitempty"`
}

func placeOf(p Place) place {
	l := p.Site.Location()
	return place{p.What, l.Function, l.Source, l.Line, l.Binary, l.Offset}
}

// WriteLines writes a JSON object for each finding.
func WriteLines(out io.Writer, found []Finding) error {
	encoder := json.NewEncoder(out)
	for _, each := range found {
		line := struct {
			Code    string  `json:"code"`
			Level   string  `json:"level"`
			PID     int     `json:"pid"`
			What    string  `json:"what"`
			At      place   `json:"at"`
			Related []place `json:"related,omitempty"`
			Count   uint64  `json:"count"`
			Why     string  `json:"why"`
			Rule    string  `json:"rule"`
			Hint    string  `json:"hint"`
		}{
			each.Name, each.Level.String(), each.Process, each.What, placeOf(each.Call), nil, each.Count, each.Meaning,
			each.Source, each.Remedy,
		}
		for _, related := range each.Related {
			line.Related = append(line.Related, placeOf(related))
		}
		if err := encoder.Encode(line); err != nil {
			return err
		}
	}
	return nil
}

// WriteJUnit writes a test case for each kind of mistake. It fails where there are errors, or, if strict is set,
// warnings. Other findings are its output.
func WriteJUnit(out io.Writer, found []Finding, strict bool) error {
	suite := junit.Testsuite{Name: "rdmarun check", Time: "0.000"}
	for _, kind := range finding.Kinds() {
		var text strings.Builder
		var first string
		for _, each := range found {
			if each.Name == kind.Name {
				writeFinding(&text, each)
				if first == "" {
					first = each.What
				}
			}
		}
		test := junit.Testcase{Classname: "rdmarun.check", Name: kind.Name}
		if fails := kind.Level == finding.Error || strict && kind.Level == finding.Warning; fails && first != "" {
			test.Failure = &junit.Result{Message: printable.Line(first), Data: printable.Text(text.String())}
		} else if first != "" {
			test.SystemOut = &junit.Output{Data: printable.Text(text.String())}
		}
		suite.AddTestcase(test)
	}
	all := junit.Testsuites{Name: "rdmarun"}
	all.AddSuite(suite)
	if _, err := io.WriteString(out, xml.Header); err != nil {
		return err
	}
	return all.WriteXML(out)
}
