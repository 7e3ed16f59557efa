package junit

import (
	"bytes"
	"encoding/xml"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"rdmarun/host/output/cases"
	"rdmarun/host/output/outfile"
	"rdmarun/host/record"
)

// suite is a suite whose test cases wait in the spool: their numbers stand above them.
type suite struct {
	junit.Testsuite
	cases   []outfile.Part
	seconds float64
}

// testcase is the library's with the properties that it lacks, as pytest and Surefire write them and CI systems show
// them.  Jenkins' schema, junit-10.xsd, has properties in a suite alone; all else here keeps to it.
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

// devices adds what is known of those that cases ran on.
func (s *suite) devices(list []record.Device) {
	for _, device := range list {
		for _, fact := range device.Facts() {
			s.AddProperty(clean("device."+device.Name+"."+strings.ReplaceAll(fact.Name, " ", "_")), clean(fact.Value))
		}
	}
}

func (t *testcase) property(name, value string) {
	t.Properties = append(t.Properties, junit.Property{Name: clean(name), Value: clean(value)})
}

// properties tell what the case was: its parameters, tags, and what its roles ran on.
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
		t.property("role."+place.Role+".device", place.Device)
		t.property("role."+place.Role+".address", place.Address)
		if device := known.Device(place.Device); device != nil {
			t.property("role."+place.Role+".driver", device.Driver)
		}
		if place.Guest != "" {
			t.property("role."+place.Role+".guest", place.Guest)
		}
	}
	if c.Result.Flaky() {
		t.property("flaky", c.Result.Reason)
	}
}
