package rdmacore_test

import (
	"slices"
	"strings"
	"testing"

	"rdmarun/rdmacore"
)

func TestParseLegal(t *testing.T) {
	for text, want := range map[string]struct {
		written string // by String
		names   int
		err     string
	}{
		"7":                       {written: "7", names: len(rdmacore.LegalChoices())},
		"0x10":                    {written: "16", names: len(rdmacore.LegalChoices())},
		"7:write_late":            {written: "7:write_late", names: 1},
		"7:rnr,completion_late":   {written: "7:completion_late,rnr", names: 2},
		"7:rnr,rnr":               {written: "7:rnr", names: 1},
		"7:all":                   {written: "7", names: len(rdmacore.LegalChoices())},
		"7:poll_short=9,rnr":      {written: "7:poll_short=9,rnr", names: 2},
		"7:rnr=4,all":             {written: "7:all,rnr=4", names: len(rdmacore.LegalChoices())},
		"7:rnr=1":                 {err: `"rnr=1": a rate is once in so many times, 2 or more`},
		"7:rnr=":                  {err: `"rnr=": a rate is once in so many times, 2 or more`},
		"7:rnr=4294967296":        {err: "a rate is"},
		"7:all=4":                 {err: `"all" is no legal choice`},
		"":                        {err: "is not a seed"},
		"x:rnr":                   {err: "is not a seed"},
		"-1":                      {err: "is not a seed"},
		"7:":                      {err: `"" is no legal choice`},
		"7:rnr,":                  {err: `"" is no legal choice`},
		"18446744073709551616":    {err: "is not a seed"},
		"7:completion_late,never": {err: `"never" is no legal choice; "rdmarun explain legal" lists them`},
	} {
		legal, err := rdmacore.ParseLegal(text)
		if want.err != "" {
			if err == nil || !strings.Contains(err.Error(), want.err) {
				t.Errorf("%q: the error is %v, want %q", text, err, want.err)
			}
			continue
		}
		if err != nil || legal.String() != want.written || len(legal.Names()) != want.names {
			t.Errorf("%q: %q with %d names, %v; want %q with %d", text, legal, len(legal.Names()), err, want.written,
				want.names)
		}
	}
	if none := (rdmacore.Legal{}).String(); none != "" {
		t.Errorf("none is %q", none)
	}
}

// A user must learn what each choice does and why it is legal.
func TestLegalChoicesAreComplete(t *testing.T) {
	var names []string
	for _, choice := range rdmacore.LegalChoices() {
		if choice.Name == "" || choice.What == "" || choice.Source == "" || choice.Rate < 2 ||
			choice.Counter != "legal_"+choice.Name {
			t.Errorf("%+v", choice)
		}
		names = append(names, choice.Name)
	}
	slices.Sort(names)
	if len(slices.Compact(names)) != len(rdmacore.LegalChoices()) {
		t.Errorf("a name is there twice: %v", names)
	}
}

// A provider says what it was opened with, and a device makes no choices of soft.
func TestLegalIsOfSoft(t *testing.T) {
	legal, _ := rdmacore.ParseLegal("7:poll_short")
	p, err := rdmacore.Open("soft", rdmacore.WithLegal(legal))
	if err != nil {
		t.Fatal(err)
	}
	if p.Legal() != legal {
		t.Errorf("opened with %v, and has %v", legal, p.Legal())
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := rdmacore.Open("verbs", rdmacore.WithLegal(legal)); err == nil ||
		!strings.Contains(err.Error(), "no legal choices") {
		t.Errorf("on verbs: %v", err)
	}
}
