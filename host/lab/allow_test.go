package lab_test

import (
	"testing"

	"rdmarun/host/lab"
)

func TestAllows(t *testing.T) {
	for name, test := range map[string]struct {
		words         []string
		what, program string
		want          bool
	}{
		"everything but programs": {nil, "guests", "", true},
		"no program":              {nil, "program", "/usr/bin/ib_send_bw", false},
		"no program at all":       {nil, "program", "", false},
		"what is listed":          {[]string{"soft", "guests"}, "guests", "", true},
		"what is not listed":      {[]string{"soft"}, "verbs", "", false},
		"a program": {
			[]string{"soft", "program=/usr/bin/ib_*"}, "program", "/usr/bin/ib_send_bw", true,
		},
		"some program":              {[]string{"program=/usr/bin/ib_*"}, "program", "", true},
		"another program":           {[]string{"program=/usr/bin/ib_*"}, "program", "/usr/bin/sh", false},
		"a program of a folder":     {[]string{"program=/usr/bin/*"}, "program", "/usr/bin/x/sh", false},
		"a relative program":        {[]string{"program=/usr/bin/*"}, "program", "usr/bin/sh", false},
		"programs allow no guests":  {[]string{"program=/usr/bin/*"}, "guests", "", false},
		"a word is no pattern":      {[]string{"soft"}, "program", "soft", false},
		"the second of two pattern": {[]string{"program=/a", "program=/b"}, "program", "/b", true},
	} {
		if got := lab.Allows(test.words, test.what, test.program); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	for name, want := range map[string]bool{"UCX_TLS": true, "BASH_ENV": false, "": false, "*": false} {
		if got := lab.AllowsVariable([]string{"soft", "program=/usr/bin/*", "env=UCX_TLS"}, name); got != want {
			t.Errorf("variable %q: %t", name, got)
		}
	}
	if !lab.AllowsVariable([]string{"env=*"}, "BASH_ENV") || lab.AllowsVariable(nil, "UCX_TLS") {
		t.Error("all variables, or none")
	}
	for _, word := range []string{
		"soft", "verbs", "guests", "measure", "program=/usr/bin/ib_*", "program=/opt/x", "env=UCX_TLS", "env=*",
	} {
		if err := lab.CheckAllow(word); err != nil {
			t.Errorf("%s: %v", word, err)
		}
	}
	for _, word := range []string{
		"", "env", "env=", "program", "program=", "program=ib_*", "program=/usr/../bin/sh", "program=/usr/bin/[",
		"guest", "program=*",
	} {
		if lab.CheckAllow(word) == nil {
			t.Errorf("%q is valid", word)
		}
	}
}
