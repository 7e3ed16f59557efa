package scenario_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"rdmarun/host/output"
	human "rdmarun/host/output/terminal"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
)

const wideScenario = `rdmarun: v1
params: {magic: {type: int, default: 0xffffffffffffffff}, small: {type: int, default: 0x1f}}
matrix: {key: [0xfffffffffffffffe]}
defaults: {qp: {max_send_wr: 4, max_recv_wr: 4, sig_all: true}}
roles:
  server: {buffers: {rx: {size: 64, access: [LOCAL_WRITE, REMOTE_WRITE, REMOTE_ATOMIC]}}}
  client: {buffers: {tx: {size: 64, access: [LOCAL_WRITE]}}}
steps:
  - {role: server, create_ep: {passive: true, port: 7471}, as: listener}
  - {role: server, listen: {ep: listener}}
  - {role: client, create_ep: {to: server, port: 7471}, as: ep}
  - {role: client, connect: {ep: ep, responder_resources: 1, initiator_depth: 1}}
  - {role: server, wait_event: {ep: listener, type: CONNECT_REQUEST}, as: ep}
  - {role: server, accept: {ep: ep, responder_resources: 1, initiator_depth: 1}}
  - {role: client, wait_event: {ep: ep, type: ESTABLISHED}}
  - {role: server, wait_event: {ep: ep, type: ESTABLISHED}}
  - {role: server, fill: {buffer: rx, fields: [{host64: $(magic)}, {u64: -1}]}}
  - {role: client, post_write: {buffer: tx, to: server.rx, offset: 32, length: 0, wr_id: $(magic)}}
  - {role: client, poll: {cq: send}, expect: {wr_id: $(magic)}, as: wc}
  - {role: client, post_write: {buffer: tx, to: server.rx, length: 0, wr_id: 18446744073709551615}}
  - {role: client, poll: {cq: send}, expect: {wr_id: {gt: 9223372036854775807, eq: -1, ge: $(key), approx: $(key), tol: 1}}}
  - {role: client, post_atomic: {buffer: tx, to: server.rx, op: FETCH_AND_ADD, add: 1}}
  - {role: client, poll: {cq: send}}
  - {role: client, decode: {buffer: tx, fields: [{host64: old}]}, expect: {old: 0xffffffffffffffff}, as: was}
  - {log: "old $(was.old), wc $(wc.wr_id), less one $(was.old - 1), magic $(magic), small $(small + 1), plain $(31)"}
  - {assert: "was.old > 5 && was.old == magic && wc.wr_id - 1 == key && bitand(was.old, 0xff) == 255"}
  - {role: client, query_device: {}, expect: {max_mr_size: {ge: 1GiB}, completion_timestamp_mask: {any_of: [0, -1]}}}
`

// minusOne is what became of all bits where a value was taken for one with a sign.
var minusOne = regexp.MustCompile(`(wr_id|old|wc|magic|one|is|mask|size)[ =]-\d|"-1"`)

// TestIntegersOf64BitsHaveNoSign shows the largest of them in every place where a run shows values. No place shows -1,
// and a value written in hex is shown in hex.
func TestIntegersOf64BitsHaveNoSign(t *testing.T) {
	for name, test := range map[string]struct {
		step   string
		shown  []string
		failed bool
	}{
		"all is well": {
			"",
			[]string{
				"old 18446744073709551615, wc 18446744073709551615, less one 18446744073709551614, magic " +
					"0xffffffffffffffff, small 0x20, plain 31",
				"wr_id=0xffffffffffffffff", "wr_id=18446744073709551615",
			},
			false,
		},
		"wrong field": {
			"{role: client, decode: {buffer: tx, fields: [{host64: old}]}, expect: {old: 0x1234}}",
			[]string{"old 0x1234", "old=0xffffffffffffffff"}, true,
		},
		"decimal": {
			"{role: client, decode: {buffer: tx, fields: [{host64: old}]}, expect: {old: 1234}}",
			[]string{"old 1234", "old 18446744073709551615"}, true,
		},
		"below": {
			"{role: client, decode: {buffer: tx, fields: [{host64: old}]}, expect: {old: {lt: 5}}}",
			[]string{"old less than 5", "old 18446744073709551615"}, true,
		},
		"by parameter": {
			"{role: client, decode: {buffer: tx, fields: [{host64: old}]}, expect: {old: $(small)}}",
			[]string{"old 0x1f", "old=0xffffffffffffffff"}, true,
		},
		"assert":      {"{assert: was.old < 7}", []string{"was.old is 18446744073709551615"}, true},
		"assert, hex": {"{assert: was.old == 0x10}", []string{"was.old is 0xffffffffffffffff"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			text := wideScenario
			if test.step != "" {
				text += "  - " + test.step + "\n"
			}
			shown := everywhere(t, text)
			for where, text := range shown {
				// the kernel's number of a device that it does not know
				text = strings.ReplaceAll(text, `"name":"index","value":"-1"`, "")
				if minusOne.MatchString(text) {
					t.Errorf("%s has %q", where, minusOne.FindString(text))
				}
			}
			for _, want := range test.shown {
				for _, where := range []string{"terminal", "jsonl"} {
					if where == "jsonl" {
						want = strings.ReplaceAll(want, "<", "\\u003c")
					}
					if !strings.Contains(shown[where], want) {
						t.Errorf("%s lacks %q:\n%s", where, want, shown["terminal"])
					}
				}
			}
			if failed := !strings.Contains(shown["terminal"], "1 passed"); failed != test.failed {
				t.Errorf("failed: %v\n%s", failed, shown["terminal"])
			}
			if !strings.Contains(shown["terminal"], "key=0xfffffffffffffffe") {
				t.Errorf("the id has not the key:\n%s", shown["terminal"])
			}
		})
	}
}

// everywhere is a run in each form of output.
func everywhere(t *testing.T, text string) map[string]string {
	t.Helper()
	folder := t.TempDir()
	path := filepath.Join(folder, "wide.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	checked := scenario.Check([]string{path}, scenario.Params{})
	if checked.Errors.Len() > 0 {
		t.Fatal(checked.Errors.Sorted()[0].Message)
	}
	var terminal bytes.Buffer
	consumers := []record.Consumer{human.NewHuman(&terminal, human.HumanOptions{Steps: true})}
	outputs := make(map[string]output.Output)
	for _, form := range []string{"jsonl", "html", "junit", "tap", "csv"} {
		output, err := output.Open(output.Target{Format: form, Path: filepath.Join(folder, "out."+form)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		outputs[form], consumers = output, append(consumers, output)
	}
	if _, err := scenario.Run(t.Context(), checked.Scenarios, scenario.RunConfig{
		Open: scenario.OpenSoft, ProviderName: "soft", Consumers: consumers,
	}); err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{"terminal": terminal.String()}
	for form, output := range outputs {
		if err := output.Close(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(folder, "out."+form))
		if err != nil {
			t.Fatal(err)
		}
		shown[form] = string(text)
	}
	return shown
}
