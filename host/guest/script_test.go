package guest_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"rdmarun/host/guest"
	"rdmarun/internal/toolchain"
)

// engine is the module that runs scripts.
func engine(t testing.TB, r *guest.Runtime) *guest.Module {
	t.Helper()
	const path = "../../bin/javascript.wasm"
	if _, err := os.Stat(path); err != nil {
		toolchain.Need(t, "c")
		if os.Getenv("CI") != "" {
			t.Fatal(err, "; make javascript builds it")
		}
		t.Skip(err, "; make javascript builds it")
	}
	m, err := r.Compile(testContext(t), path)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// What ends a script says why, and where it was; nothing else comes to harm.
func TestScripts(t *testing.T) {
	r, p := newRuntime(t, guest.InterruptMetered), newProvider(t)
	m := engine(t, r)
	short := guest.Limits{Time: 4 * time.Second} // of which a script that ends itself has 2 s (lastWords)
	for name, c := range map[string]struct {
		script string
		limits guest.Limits
		code   int
		prints string
	}{
		"arguments": {`print(args.length, args[0], typeof rdma.post_send)`, guest.Limits{}, 0, "1 word function\n"},
		"what it is given": {`print(JSON.stringify(env), rdma.text(read_file()), rdma.text(read_file("/etc/peer.conf")), read_file("data/big").byteLength)`,
			guest.Limits{}, 0, "{\"LEVEL\":\"debug\"} input port 7471 100000\n"},
		"no such file": {
			"\nread_file('/etc/passwd')", guest.Limits{}, 1,
			"odd.js:2:10: ReferenceError: /etc/passwd: there is no such file\n",
		},
		"a folder": {
			"read_file('/etc')", guest.Limits{}, 1, "odd.js:1:10: ReferenceError: /etc: it cannot be read\n",
		},
		"an end": {`exit(7)`, guest.Limits{}, 7, ""},
		"an error": {
			"\nfunction f() {\n  throw new TypeError('no') }\nf()", guest.Limits{}, 1,
			"odd.js:3:22: TypeError: no\n    at f (odd.js:3:22)\n    at <eval> (odd.js:4:2)\n",
		},
		"anything": {`throw 42`, guest.Limits{}, 1, "odd.js: 42\n"},
		"nothing":  {`throw undefined`, guest.Limits{}, 1, "odd.js: undefined\n"},
		"no text": {
			`throw {toString() { throw this }}`, guest.Limits{}, 1, "odd.js: an exception without a text\n",
		},
		"syntax":       {"let a = 1;\nlet b = ;", guest.Limits{}, 1, "odd.js:2:9: SyntaxError: "},
		"an assertion": {`assert(1 === 2, "sums")`, guest.Limits{}, 1, "odd.js:1:7: AssertionError: sums\n"},
		"a promise": {
			"async function f() {\n await 1; throw new Error('late') }\nf()", guest.Limits{}, 1,
			"odd.js:2:26: Error: late\n",
		},
		"a caught promise": {"Promise.reject(1).catch(() => print('caught'))", guest.Limits{}, 0, "caught\n"},
		"recursion": {
			"function f(n) {\n  return f(n + 1) + 1 }\nf(0)", guest.Limits{}, 1, "InternalError: stack overflow\n",
		},
		"recursion to text": {
			"let a = []; a[0] = {toString() { return String(a) }}; String(a[0])", guest.Limits{}, 1,
			"InternalError: stack overflow\n",
		},
		"spins": {
			"let n = 0;\nfor (;;) n = Math.max(n, 1);", short, 124, "odd.js:2:22: the script exceeded its time limit\n",
		},
		"spins and catches": {
			"for (;;) {\n  try { for (;;); } catch { } finally { } }", short, 124,
			"the script exceeded its time limit\n",
		},
		"promises go on": {
			"const go = () => Promise.resolve().then(go); go()", short, 124, "the script exceeded its time limit\n",
		},
		"matches on": {"/^(a+)+$/.test('a'.repeat(40) + 'b')", short, 124, ""},
		"sorts on": {
			"[3, 1, 2].sort(() => { for (;;); })", short, 124, "the script exceeded its time limit\n",
		},
		"waits on": {
			"const c = rdma.create_event_channel();\nrdma.wait_event(c, null)", short, 1,
			"odd.js:2:16: RdmaError: wait_event: ",
		},
		"grows": {"const all = [];\nfor (;;) all.push(new Array(1000).fill(all.length));", guest.Limits{
			Memory: 16 << 20,
		}, 1,
			"InternalError: out of memory\n"},
		"grows at once": {
			"new ArrayBuffer(2 ** 31 - 1)", guest.Limits{Memory: 16 << 20}, 1,
			"odd.js:1:16: InternalError: out of memory\n",
		},
		"grows in text": {"let s = 'x'; for (;;) s += s;", guest.Limits{Memory: 16 << 20}, 1, "odd.js:1:"},
		"grows in regions": {
			"const pd = rdma.alloc_pd(null);\nfor (;;) rdma.region(pd, 1 << 20)", guest.Limits{Memory: 16 << 20}, 1,
			"InternalError: out of memory\n",
		},
		"grows and catches": {"const all = [];\nfor (;;) try { all.push(new Array(1e5).fill(0)) } catch { " +
			"all.push(0) }",
			guest.Limits{Memory: 16 << 20, Time: 2 * time.Second}, 124, ""},
		"too many objects": {
			"for (;;) rdma.create_event_channel()", guest.Limits{Handles: 10}, 1, "RdmaError: create_event_channel: ",
		},
		"prints on": {
			"for (;;) print('x'.repeat(1000))", guest.Limits{Output: 1 << 16, Time: 5 * time.Second}, -1, "xxx",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out output
			script := guest.Script{File: "odd.js", Text: c.script}
			result := r.Run(testContext(t), m, script.Configure(guest.Config{
				Provider: p, Args: []string{"word"}, Limits: c.limits, Stdout: &out, Stderr: &out,
				Env: map[string]string{"LEVEL": "debug"}, Stdin: strings.NewReader("input"),
				Files: map[string]string{"etc/peer.conf": "port 7471", "data/big": strings.Repeat("x", 100000)},
			}))
			if result.ExitCode != c.code && c.code >= 0 {
				t.Errorf("%s %d: %v\n%.2000s", result.Outcome, result.ExitCode, result.Err, out.String())
			}
			if !strings.Contains(out.String(), c.prints) || strings.Count(out.String(), "\n    at ") > 10 {
				t.Errorf("printed\n%.2000s", out.String())
			}
		})
	}
}

// A file that is not a script is detected without running it, each text once. The test does not wait for an engine
// that does not answer in time.
func TestScriptParser(t *testing.T) {
	engine(t, newRuntime(t, guest.InterruptMetered)) // it is built
	t.Setenv(guest.EngineVariable, "../../bin/javascript.wasm")
	p := guest.NewScriptParser(guest.RuntimeConfig{CacheDir: cacheDir})
	defer p.Close()
	for text, want := range map[string]string{
		"print(1)":                 "",
		"throw 1":                  "",
		"for (;;);":                "",
		"let a = 1;\nlet b = ;":    "odd.js:2:9: SyntaxError: unexpected token in expression: ';'",
		"'use strict'; with (a) b": "odd.js:1:15: SyntaxError: invalid keyword: with",
		strings.Repeat("(", 1<<19): "SyntaxError: stack overflow",
	} {
		for range 2 {
			err := p.Parse(testContext(t), &guest.Script{File: "odd.js", Text: text})
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%.40q: %v", text, err)
			}
		}
	}
	ended, cancel := context.WithCancel(testContext(t))
	cancel()
	if err := p.Parse(ended, &guest.Script{File: "odd.js", Text: "another"}); err == nil {
		t.Error("a context that has ended does not end it")
	}
	t.Setenv(guest.EngineVariable, "nowhere.wasm")
	if err := p.Parse(testContext(t), &guest.Script{File: "odd.js", Text: "a third"}); err == nil ||
		!strings.Contains(err.Error(), "nowhere.wasm") {
		t.Errorf("no engine: %v", err)
	}
}

// How scripts write what the ABI takes, and what they get of it.
func TestScriptsCall(t *testing.T) {
	r, p := newRuntime(t, guest.InterruptMetered), newProvider(t)
	m := engine(t, r)
	const begin = `const channel = rdma.create_event_channel(), pd = rdma.alloc_pd(null);
const qp = {qp_type: "RC", max_send_wr: 4, max_recv_wr: 4, max_send_sge: 1, max_recv_sge: 1};
function fails(what, f) { try { f() } catch (e) { print(e.name, e.message.includes(what) || e.message); return e } print("no error") }
`
	for name, c := range map[string]struct{ script, prints string }{
		"a mistake": {
			`fails("addr_info has no field \"flag\"", () => rdma.create_ep(channel, {flag: 1}, pd, qp))`,
			"TypeError true\n",
		},
		"a wrong name": {
			`fails("\"PASIVE\" is no value of addr_info_flags", () => rdma.create_ep(channel, {flags: "PASIVE"}, pd, qp))`,
			"TypeError true\n",
		},
		"a fraction": {`fails("no whole number", () => rdma.listen(1, 1.5))`, "TypeError true\n"},
		"too great":  {`fails("does not fit", () => rdma.listen(1, 2 ** 33))`, "RangeError true\n"},
		"a symbol":   {`fails("no number", () => rdma.listen(1, Symbol()))`, "TypeError true\n"},
		"too many":   {`fails("takes 2 arguments, not 3", () => rdma.listen(1, 1, 1))`, "TypeError true\n"},
		"nothing": {
			`fails("addr_info is written as an object", () => rdma.create_ep(channel))`, "TypeError true\n",
		},
		"a stale handle": {
			`const e = fails("listen: ", () => rdma.listen(4711, 1)); print(e.errno, e.code, e.function)`,
			"RdmaError true\nEBADF 9 listen\n",
		},
		"a getter throws": {
			`fails("mine", () => rdma.create_ep(channel, {get flags() { throw new Error("mine") }}, pd, qp))`,
			"Error true\n",
		},
		"a detached view": {
			`const b = new ArrayBuffer(8), v = new Uint8Array(b); try { b.transfer(4) } catch {}; const m = rdma.reg_mr(pd, new Uint8Array(8)); print(typeof m.handle)`,
			"number\n",
		},
		"a long list": {
			`fails("takes a list of at most", () => rdma.post_send(1, new Array(5000), []))`, "TypeError true\n",
		},
		"room": {`fails("no room for so many", () => rdma.poll_cq(1, 1e9))`, "RangeError true\n"},
		"private data": {
			`fails("has room for 255 bytes, not 256", () => rdma.connect(1, {private_data: "x".repeat(256)}))`,
			"RangeError true\n",
		},
		"an address": {`const l = rdma.create_ep(channel, {flags: ["PASSIVE"], source: "127.0.0.1"}, pd, qp);
rdma.listen(l, 1); const at = rdma.local_address(l); print(/^127.0.0.1:[1-9]\d*$/.test(at), rdma.src_port(l) == at.split(":")[1]);
fails("no address", () => rdma.bind_addr(l, "nowhere:1"))`, "true true\nTypeError true\n"},
		"big numbers": {
			`print(typeof rdma.query_device(null).max_mr_size, typeof rdma.clock_ns()); print(rdma.text(rdma.encode("häß\0x")))`,
			"number\nhäß\n",
		},
		"flags": {`const e = rdma.create_eventfd(1, []); print(rdma.poll_set([{handle: e, events: ["IN", 2]}], 0).map(p => p.events + "/" + p.revents))`,
			"IN,PRI/IN\n"},
		"a synchronous endpoint": {`const id = rdma.create_id(null, "TCP"); rdma.resolve_addr(id, null, rdma.device_address(null), 2000); print(rdma.complete_id(id))`,
			"undefined\n"},
		"texts": {
			`rdma.log("INFO", "a line"); print(rdma.has_function("post_send"), rdma.has_function("post_cobol"))`,
			"1 0\n",
		},
		"one end to the other": {`const l = rdma.create_ep(channel, {flags: "PASSIVE", source: "127.0.0.1"}, pd, qp); rdma.listen(l, 1);
const a = rdma.create_ep(channel, {destination: rdma.local_address(l)}, pd, qp);
rdma.connect(a, {private_data: "who", initiator_depth: 1, responder_resources: 1});
const request = rdma.expect(channel, l, "CONNECT_REQUEST"), b = request.ep;
print(rdma.text(request.param.private_data), request.param.initiator_depth);
const from = rdma.region(pd, 8), to = rdma.region(pd, 8, ["LOCAL_WRITE", "REMOTE_READ"]);
rdma.post_recv(rdma.ep_qp(b), [{wr_id: 2 ** 40, num_sge: 1}], [rdma.sge(to)]);
rdma.accept(b, {}); rdma.expect(channel, a, "ESTABLISHED"); rdma.expect(channel, b, "ESTABLISHED");
from.bytes.set(rdma.encode("hello"));
print(rdma.post_send(rdma.ep_qp(a), [{opcode: "SEND", send_flags: ["SIGNALED"], num_sge: 1}], [rdma.sge(from, from.bytes.subarray(0, 5))]));
print(rdma.complete(rdma.ep_send_cq(a)).opcode, rdma.complete(rdma.ep_recv_cq(b)).wr_id, rdma.text(to.bytes));
rdma.post_recv(rdma.ep_qp(b), [{wr_id: 3, num_sge: 1}], [rdma.sge(to)]);
const send = [{wr_id: 4, opcode: "SEND", send_flags: ["SIGNALED"], num_sge: 1}], sends = rdma.ep_send_cq(a);
print(rdma.post_send_spin(rdma.ep_qp(a), send, [rdma.sge(from)], sends, 4, 1000000).map(wc => wc.wr_id));
rdma.dereg_mr(from); print(rdma.query_qp(rdma.ep_qp(a)).qp_state)`, "who 1\n1\nSEND 1099511627776 hello\n4\nRTS\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out output
			script := guest.Script{File: "odd.js", Text: begin + c.script}
			result := r.Run(testContext(t), m, script.Configure(guest.Config{Provider: p, Stdout: &out, Stderr: &out}))
			if !result.OK() || !strings.Contains(out.String(), c.prints) {
				t.Errorf("%s %d: %v\n%.2000s", result.Outcome, result.ExitCode, result.Err, out.String())
			}
		})
	}
}

// A wait that the run ends does not blame the script's own time.
func TestScriptIsStopped(t *testing.T) {
	r, p := newRuntime(t, guest.InterruptMetered), newProvider(t)
	var out output
	script := guest.Script{
		File: "odd.js", Text: `const c = rdma.create_event_channel(); print("waits"); rdma.wait_event(c, null)`,
	}
	ctx := testContext(t)
	running, err := r.Start(ctx, engine(t, r), script.Configure(guest.Config{Provider: p, Stdout: &out, Stderr: &out,
		Limits: guest.Limits{Time: time.Minute}}))
	if err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(out.String(), "waits") && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	if running.Stop(ctx); !strings.Contains(out.String(), "wait_event: ") ||
		strings.Contains(out.String(), "own time") {
		t.Errorf("%s", &out)
	}
}

// Editors know all that scripts have: each property of rdma, and each global.
func TestDeclarationsOfScripts(t *testing.T) {
	r, p := newRuntime(t, guest.InterruptMetered), newProvider(t)
	var out output
	script := guest.Script{File: "odd.js", Text: `print(Object.keys(rdma).join("\n"))`}
	if result := r.Run(
		testContext(t), engine(t, r), script.Configure(guest.Config{Provider: p, Stdout: &out}),
	); !result.OK() {
		t.Fatal(result.Err)
	}
	text, err := os.ReadFile("../../sdk/javascript/rdma.d.ts")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(out.String()) {
		if !regexp.MustCompile(`\n  (readonly )?` + name + `[(:]`).Match(text) {
			t.Errorf("rdma.%s is not declared", name)
		}
	}
}

// Chance is drawn from the seed where there is one, and otherwise is another each time.
func TestScriptsDraw(t *testing.T) {
	r, p := newRuntime(t, guest.InterruptMetered), newProvider(t)
	m := engine(t, r)
	draw := func(seed *uint64) string {
		var out output
		script := guest.Script{
			File: "odd.js",
			Text: `const a = Math.random(); assert(a >= 0 && a < 1 && a !== Math.random()); print(a, Math.random())`,
		}
		result := r.Run(
			testContext(t), m, script.Configure(guest.Config{Provider: p, Stdout: &out, Stderr: &out, Seed: seed}),
		)
		if !result.OK() {
			t.Fatalf("%s %d: %v\n%.2000s", result.Outcome, result.ExitCode, result.Err, out.String())
		}
		return out.String()
	}
	seven, eight := uint64(7), uint64(8)
	if once, again := draw(&seven), draw(&seven); once != again {
		t.Errorf("of one seed %s and %s", once, again)
	}
	if one, other := draw(&seven), draw(&eight); one == other {
		t.Errorf("of two seeds %s", one)
	}
	if once, again := draw(nil), draw(nil); once == again {
		t.Errorf("of none twice %s", once)
	}
}
