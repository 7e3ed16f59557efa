package scenario_test

import (
	"strings"
	"testing"
)

const connected = `rdmarun: v1
defaults: {qp: {max_send_wr: 4, max_recv_wr: 4, sig_all: true}}
roles:
  server: {buffers: {rx: {size: 64, access: []}}}
  client: {buffers: {tx: {size: 64}}}
steps:
  - {role: server, create_ep: {passive: true, port: 7471}, as: listener}
  - {role: server, listen: {ep: listener}}
  - {role: client, create_ep: {to: server, port: 7471}, as: ep}
  - {role: client, connect: {ep: ep}}
  - {role: server, wait_event: {ep: listener, type: CONNECT_REQUEST}, as: ep}
  - {role: server, accept: {ep: ep}}
  - {role: client, wait_event: {ep: ep, type: ESTABLISHED}}
  - {role: server, wait_event: {ep: ep, type: ESTABLISHED}}
`

// TestExpectAny: any status and any errno is taken, but no silence, and no event of another type than the step asks for.
// The buffer without rights shows the statuses: nobody may write to it.
func TestExpectAny(t *testing.T) {
	for name, test := range map[string]struct {
		steps  string
		passes bool
		says   string
	}{
		"a success": {`  - {role: server, post_recv: {buffer: rx, length: 0}}
  - {role: client, post_send: {buffer: tx, length: 0}}
  - {role: client, poll: {cq: send}, expect: any, as: wc}
  - {role: server, poll: {cq: recv}, expect: any}
  - {assert: wc.status == "SUCCESS"}
`, true, ""},
		"a failure": {`  - {role: client, post_write: {buffer: tx, to: server.rx}}
  - {role: client, poll: {cq: send}, expect: any, as: wc}
  - {role: server, wait_async: {}, expect: any}
  - {assert: wc.status == "REM_ACCESS_ERR"}
`, true, ""},
		"a failure, without any": {`  - {role: client, post_write: {buffer: tx, to: server.rx}}
  - {role: client, poll: {cq: send}, leftovers: ignore}
`, false, "wrong status"},
		"an errno":              {"  - {role: client, connect: {ep: ep}, expect: any}\n", true, "failed with EINVAL, where anything may come"},
		"an errno, without any": {"  - {role: client, connect: {ep: ep}}\n", false, "it failed"},
		"silence":               {"  - {role: client, poll: {cq: send, within: 1s}, expect: any}\n", false, "no completion"},
		"a wrong event":         {"  - {role: client, disconnect: {ep: ep}}\n  - {role: server, wait_event: {ep: ep, type: ESTABLISHED}, expect: any}\n", false, "wrong event"},
	} {
		t.Run(name, func(t *testing.T) {
			shown := everywhere(t, connected+test.steps)["terminal"]
			if passed := strings.Contains(shown, "1 passed"); passed != test.passes || !strings.Contains(shown, test.says) {
				t.Errorf("passed %v, want %v and %q:\n%s", passed, test.passes, test.says, shown)
			}
		})
	}
}
