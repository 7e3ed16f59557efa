// Package junit writes JUnit's XML, as CI systems read it.
package junit

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"rdmarun/host/output/cases"
	"rdmarun/host/output/outfile"
	"rdmarun/host/record"
)

// Writer is the output: a suite for each scenario file, a test case for each case.
type Writer struct {
	file    *outfile.File
	tracker *cases.Tracker
	spool   outfile.Spool
	suites  []*suite
	byFile  map[string]*suite
	run     record.Run
	total   float64
}

// limits of a case's system-out: that of a failure has the last steps anyway.
var limits = cases.Limits{Steps: 100, Lines: 200}

// New writes to file.
func New(file *outfile.File) *Writer {
	return &Writer{file: file, tracker: cases.NewTracker(limits), byFile: make(map[string]*suite)}
}

// Wants implements record.Consumer.
func (w *Writer) Wants(record.Kind) bool { return true }

// Record implements record.Consumer.
func (w *Writer) Record(r *record.Record) error {
	if r.Kind == record.RunStart {
		w.run = *r.Run
	}
	if c := w.tracker.Record(r); c != nil {
		return w.add(c)
	}
	return nil
}

// Close implements report.Output.
func (w *Writer) Close() error {
	defer w.Discard()
	for _, c := range w.tracker.Unfinished() {
		if err := w.add(c); err != nil {
			return err
		}
	}
	all := junit.Testsuites{Name: "rdmarun", Time: milliseconds(w.total)}
	for i, s := range w.suites {
		s.devices(w.tracker.Devices())
		s.ID, s.Time = i, milliseconds(s.seconds)
		all.AddSuite(s.Testsuite)
	}
	all.Suites = nil // they were counted
	all.Skipped = 0  // Jenkins' schema has this number with each suite, and not with all
	if _, err := w.file.Write([]byte(xml.Header)); err != nil {
		return err
	}
	err := around(w.file, "testsuites", "", &all, func() error {
		for _, s := range w.suites {
			err := around(w.file, "testsuite", "\t", &s.Testsuite, func() error {
				return w.spool.Copy(w.file, s.cases)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return w.file.Commit()
}

// milliseconds is what Jenkins' schema (junit-10.xsd of its xUnit plugin) allows of a sum; a test case may have more.
func milliseconds(seconds float64) string { return fmt.Sprintf("%.3f", seconds) }

func (w *Writer) add(c *cases.Case) error {
	s := w.byFile[c.File]
	if s == nil {
		s = w.newSuite(c)
	}
	s.seconds += c.Result.Took.Seconds()
	w.total += c.Result.Took.Seconds()
	test := testcase{Testcase: junit.Testcase{
		Name: clean(c.Title()), Classname: clean(c.File), Time: cases.Seconds(c.Result.Took),
	}}
	test.properties(c, w.tracker)
	if c.Attempt > 0 {
		test.Name += fmt.Sprintf(" (%d)", c.Attempt+1)
	}
	result := &junit.Result{Message: clean(c.Message()), Type: string(c.Result.Status), Data: clean(c.FailureText())}
	switch {
	case c.Result.Status == record.Skipped:
		test.Skipped = &junit.Result{Message: clean(c.Result.Reason)}
	case c.Result.Status == record.XFailed:
		// The format has no expected failure, and its readers must not take this for a real one.
		test.Skipped = &junit.Result{Message: clean("xfailed: " + c.Message()), Data: result.Data}
	case c.Infrastructure():
		test.Error = result
	case c.Failed():
		if len(c.Result.Failures) > 0 {
			result.Type = string(c.Result.Failures[0].Kind)
		}
		test.Failure = result
	}
	if text := systemOut(c); text != "" {
		test.SystemOut = &junit.Output{Data: clean(text)}
	}
	if err := s.add(&test, &w.spool); err != nil {
		return fmt.Errorf("write the report %s: %w", w.file.Name(), err)
	}
	return nil
}

func (w *Writer) newSuite(c *cases.Case) *suite {
	s := &suite{}
	s.Name, s.File = clean(c.File), clean(c.File)
	s.SetTimestamp(c.Begin)
	s.AddProperty("provider", w.run.Provider)
	for _, name := range slices.Sorted(maps.Keys(w.run.Environment)) {
		s.AddProperty(clean(name), clean(w.run.Environment[name]))
	}
	w.suites, w.byFile[c.File] = append(w.suites, s), s
	return s
}

// systemOut has everything about the case that the format has no element for.
func systemOut(c *cases.Case) string {
	var b strings.Builder
	for _, line := range append(c.Limited(), c.Tallied()...) {
		b.WriteString(line + "\n")
	}
	b.WriteString(c.Transcript())
	if path := c.Result.Capture; path != "" {
		fmt.Fprintf(&b, "[[ATTACHMENT|%s]]\n", path) // as Jenkins and GitLab read it
	}
	return b.String()
}

// clean drops what XML 1.0 cannot hold, such as the control characters a guest may print.
func clean(text string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == utf8.RuneError, c == '\t', c == '\n', c == '\r', c >= 0x20 && c <= 0xd7ff,
			c >= 0xe000 && c <= 0xfffd, c >= 0x10000:
			return c
		}
		return utf8.RuneError
	}, text)
}

// Discard drops the report.
func (w *Writer) Discard() {
	w.spool.Close()
	w.file.Discard()
}

// suite is a suite with test cases that wait in the spool: their numbers come before them.
type suite struct {
	junit.Testsuite
	cases   []outfile.Part
	seconds float64
}

// testcase adds properties to the library's type, as pytest and Surefire write them and CI systems show them.  Jenkins'
// schema, junit-10.xsd, has properties in a suite alone; everything else here keeps to it.
type testcase struct {
	Properties []junit.Property `xml:"properties>property,omitempty"`
	junit.Testcase
}

// add counts a test case and writes it to the spool.
func (s *suite) add(test *testcase, spool *outfile.Spool) (err error) {
	s.AddTestcase(test.Testcase)
	s.Testcases = nil // it was counted
	s.cases, err = spool.Append(s.cases, func(out io.Writer) error { return encode(out, "testcase", "\t\t", test) })
	return err
}

// encode writes an element on lines of its own, below prefix.
func encode(out io.Writer, name, prefix string, value any) error {
	encoder := xml.NewEncoder(out)
	encoder.Indent(prefix, "\t")
	if err := encoder.EncodeElement(value, xml.StartElement{Name: xml.Name{Local: name}}); err != nil {
		return err
	}
	_, err := io.WriteString(out, "\n")
	return err
}

// around writes an element with content that is written already, between what it has itself and its end.
func around(out io.Writer, name, prefix string, value any, content func() error) error {
	var text bytes.Buffer
	if err := encode(&text, name, prefix, value); err != nil {
		return err
	}
	end := "</" + name + ">\n"
	begin := strings.TrimRight(strings.TrimSuffix(text.String(), end), "\n\t")
	if _, err := io.WriteString(out, begin+"\n"); err != nil {
		return err
	}
	if err := content(); err != nil {
		return err
	}
	_, err := io.WriteString(out, prefix+end)
	return err
}

// devices adds what is known of the devices that cases ran on.
func (s *suite) devices(list []record.Device) {
	for _, device := range list {
		for _, fact := range device.Facts() {
			name := "device." + device.Name
			if device.Host != "" {
				name = "host." + device.Host + "." + name
			}
			s.AddProperty(clean(name+"."+strings.ReplaceAll(fact.Name, " ", "_")), clean(fact.Value))
		}
	}
}

func (t *testcase) property(name, value string) {
	t.Properties = append(t.Properties, junit.Property{Name: clean(name), Value: clean(value)})
}

// properties describe the case: its parameters and tags, and what its roles ran on.
func (t *testcase) properties(c *cases.Case, known *cases.Tracker) {
	t.property("status", string(c.Result.Status))
	for _, name := range slices.Sorted(maps.Keys(c.Start.Params)) {
		t.property("param."+name, c.Start.Params[name])
	}
	if seed := c.Start.Seed; seed != nil {
		t.property("seed", strconv.FormatUint(*seed, 10))
	}
	for _, tag := range c.Start.Tags {
		t.property("tag", tag)
	}
	for _, place := range c.Start.Roles {
		if place.Host != "" {
			t.property("role."+place.Role+".host", place.Host)
		}
		if place.Provider != "" {
			t.property("role."+place.Role+".provider", place.Provider)
		}
		t.property("role."+place.Role+".device", place.Device)
		t.property("role."+place.Role+".address", place.Address)
		if device := known.Device(place); device != nil {
			t.property("role."+place.Role+".driver", device.Driver)
		}
		if place.Guest != "" {
			t.property("role."+place.Role+".guest", place.Guest)
		}
	}
	if path := c.Result.Capture; path != "" {
		t.property("capture", path)
	}
	if c.Result.Flaky() {
		t.property("flaky", c.Result.Reason)
	}
}
