package compile

import "testing"

// TestLabels: a name without its expressions has nothing left of them.
func TestLabels(t *testing.T) {
	for name, want := range map[string]string{
		"plain, (with) marks: and - more...": "plain, (with) marks: and - more...",
		"write with immediate data $(imm), then data lost with $(retry) retries": "write with immediate data, then " +
			"data lost with retries",
		"depth $(depth) (of $(kind))":         "depth (of)",
		"$(size) requests ($(size), $(kind))": "requests",
		"size=$(n), depth=$(d): both":         "size, depth: both",
		"$(n)KiB in $(a)-$(b) pieces":         "in pieces",
		"ping-$(i)":                           "ping",
		"ping$(i)":                            "ping",
		"$(n)KiB":                             "KiB",
		"$(a)":                                "",
		"lost: $(kind).":                      "lost.",
		"the message '$(text)' is [$(a), $(b)] long, $(c)": "the message is long",
		"a  $(f('(', \", \"))  b":                          "a b",
	} {
		if got := label(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}
