package compile_test

import (
	"strings"
	"testing"

	"rdmarun/host/scenario/diag"
)

// TestWhatValuesSee checks files that differ in what is known at the place of a value.
func TestWhatValuesSee(t *testing.T) {
	const begin = "rdmarun: v1\nroles:\n  client: {buffers: {tx: {size: 64, access: [LOCAL_WRITE]}}}\n"
	for name, test := range map[string]struct {
		text string
		code diag.Code // of the only error; "" for none
		says string
	}{
		"rights of a for_each": {text: `steps:
  - {role: client, for_each: {right: [REMOTE_READ, REMOTE_WRITE]}, rereg: {buffer: tx, access: [LOCAL_WRITE, $(right)]}}
`},
		"rights of a fragment": {text: `steps:
  - {use: again, with: {right: REMOTE_READ}}
fragments:
  again:
    params: {right: {type: string}}
    do:
      - {role: client, rereg: {buffer: tx, access: [$(right)]}}
`},
		"rights of a fragment that nothing uses": {text: `steps:
  - {role: client, fill: {buffer: tx, byte: 1}}
fragments:
  again:
    params: {right: {type: string}}
    do:
      - {role: client, rereg: {buffer: tx, access: [$(right)]}}
`},
		"rights that are known in the run only": {text: `steps:
  - repeat: 2
    as: i
    do:
      - {role: client, rereg: {buffer: tx, access: ["$(i == 0 ? 'LOCAL_WRITE' : 'REMOTE_READ')"]}}
`, code: diag.NotConstant, says: "access must be known before the run"},
		"a threshold where there is a baseline": {text: `steps:
  - {role: client, fill: {buffer: tx, byte: 1}}
thresholds:
  - {metric: duration, pass: [value < 1s], if: baseline != nil}
`},
		"a threshold with an if of what the baseline measured": {text: `steps:
  - {role: client, fill: {buffer: tx, byte: 1}}
thresholds:
  - {metric: duration, pass: [value < 1s], if: baseline.value > 1ms}
`, code: diag.UndefinedMember, says: `no member "value" here`},
		"a guest that starts in no role": {text: `steps:
  - {guest: start}
`, code: diag.MissingRole, says: "needs a role"},
		"data that begins with an expression and does not end": {text: `steps:
  - {role: client, create_ep: {to: 127.0.0.1, port: 7471}, as: ep}
  - {role: client, connect: {ep: ep, private_data: "$('a')$('b'"}}
`, code: diag.WrongShape, says: "private_data wants data"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errors := compileText(begin+test.text, nil)
			found := errors.Sorted()
			if test.code == "" && len(found) > 0 {
				t.Fatal(found[0])
			}
			if test.code != "" &&
				(len(found) != 1 || found[0].Code != test.code || !strings.Contains(found[0].Message, test.says)) {
				t.Errorf("got %v, want %s", found, test.code)
			}
		})
	}
}
