package junit

import (
	"maps"
	"slices"
	"strings"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"rdmarun/host/report/cases"
	"rdmarun/host/scenario/record"
)

// The library's types with what they lack: properties of a test case, as pytest and Surefire write them and as
// CI systems show them (Jenkins' schema, junit-10.xsd, has them in a suite alone; all else here keeps to it).  A field here takes the place of the library's of that name in the XML.

type testsuites struct {
	junit.Testsuites
	Suites []*suite `xml:"testsuite"`
}

type suite struct {
	junit.Testsuite
	Cases   []testcase `xml:"testcase"`
	seconds float64
}

type testcase struct {
	Properties []junit.Property `xml:"properties>property,omitempty"`
	junit.Testcase
}

// add counts a test case.
func (s *suite) add(test testcase) {
	s.AddTestcase(test.Testcase)
	s.Testcases = nil // it was counted; what is written are Cases
	s.Cases = append(s.Cases, test)
}

// add counts a suite.
func (t *testsuites) add(s *suite) {
	t.AddSuite(s.Testsuite)
	t.Testsuites.Suites = nil
	t.Suites = append(t.Suites, s)
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
