package agent

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rdmarun/host/bus"
	"rdmarun/host/lab"
	"rdmarun/host/pack"
	"rdmarun/host/scenario"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// waitLimit bounds what must come at all.
const waitLimit = time.Minute

// controller is the other end of an agent.
type controller struct {
	conn  *bus.Conn
	who   bus.Credentials
	ended chan error
	// close ends the agent's standard input and output, as the controller's end does.
	close func()
}

// start starts an agent, as a launcher does, which is allowed everything, or some words.
func start(t *testing.T, allow ...string) *controller {
	t.Helper()
	server, err := bus.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	c := &controller{who: bus.NewCredentials(), ended: make(chan error, 1)}
	here, there := net.Pipe()
	go func() {
		c.ended <- Serve(context.Background(), there, there, there.Close, Config{
			Version: "v1", Allow: allow, Warn: func(text string) { t.Error(text) }, Die: func() {},
			Open: func(string, *scenario.RunConfig) (func() error, error) { return func() error { return nil }, nil },
			Examine: func(_ context.Context, what lab.Look) lab.Examined {
				return lab.Examined{Version: "v1", Device: what.Provider + " " + strings.Join(what.Devices, " ")}
			},
		})
	}()
	if _, err := fmt.Fprintln(here, lab.Greeting(c.who)); err != nil {
		t.Fatal(err)
	}
	var line []byte
	for char := []byte{0}; char[0] != '\n'; line = append(line, char...) {
		if _, err := here.Read(char); err != nil {
			t.Fatal(err)
		}
	}
	if answer, ok := lab.ParseAnswer(string(line)); !ok || answer.Version != "v1" || answer.Protocol != lab.Protocol {
		t.Fatalf("%q", line)
	}
	serving, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(serving, c.who, here) }()
	c.close = func() {
		cancel()
		<-served
	}
	if c.conn, err = server.Connect(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.conn.Close)
	return c
}

// ask asks the agent.
func (c *controller) ask(t *testing.T, what string, question []byte) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	answer, err := c.conn.Await(ctx, bus.To(c.who.Name, what), question)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// examine has it look at its host.
func (c *controller) examine(t *testing.T, what lab.Look) (examined lab.Examined) {
	t.Helper()
	raw, err := json.Marshal(what)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(c.ask(t, lab.SubjectExamine, raw), &examined); err != nil {
		t.Fatal(err)
	}
	return examined
}

// order gives it an order, and returns why it cannot do it.
func (c *controller) order(t *testing.T, order any) string {
	t.Helper()
	raw, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}
	var done lab.Done
	if err := json.Unmarshal(c.ask(t, lab.SubjectOrder, raw), &done); err != nil {
		t.Fatal(err)
	}
	return done.Error
}

// packed is a pack of a scenario, and where it comes from.
func packed(t *testing.T, text string) (archive []byte, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "case.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	if _, err := pack.Write(&packed, []string{path}, nil); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes(), path
}

// bring answers the agent's questions for parts of a pack.
func (c *controller) bring(t *testing.T, archive []byte) {
	t.Helper()
	stop, err := c.conn.Listen(func(said *bus.Message) {
		var question lab.Part
		if json.Unmarshal(said.Data, &question) != nil || question.Offset > len(archive) {
			_ = said.Respond(nil)
			return
		}
		_ = said.Respond(archive[question.Offset:min(len(archive), question.Offset+100)])
	}, bus.From(c.who.Name, lab.SubjectPart))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
}

func digest(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

func TestExamineAndLeave(t *testing.T) {
	c := start(t)
	if examined := c.examine(t, lab.Look{
		Provider: "soft", Devices: []string{"soft0"},
	}); examined.Device != "soft soft0" {
		t.Errorf("%+v", examined)
	}
	var unreadable lab.Examined
	if err := json.Unmarshal(c.ask(t, lab.SubjectExamine, []byte("soft")), &unreadable); err != nil ||
		!strings.Contains(unreadable.Error, "cannot be read") {
		t.Errorf("%+v %v", unreadable, err)
	}
	var clock int64
	if _, err := fmt.Sscan(string(c.ask(t, lab.SubjectClock, nil)), &clock); err != nil ||
		time.Since(time.Unix(0, clock)).Abs() > waitLimit {
		t.Errorf("%d %v", clock, err)
	}
	c.close()
	if err := <-c.ended; err != nil {
		t.Errorf("a controller that needs no more is no error: %v", err)
	}
}

// TestControllerLeavesAtOnce: a controller ends with the greeting when its other hosts have not come. The agent does
// not complain.
func TestControllerLeavesAtOnce(t *testing.T) {
	here, there := net.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(context.Background(), there, there, there.Close, Config{Version: "v1"})
	}()
	if _, err := fmt.Fprintln(here, lab.Greeting(bus.NewCredentials())); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(here).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	here.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestControllerLeavesTheBus: if the controller goes before its agent listens, the agent does not report it, and no
// names on the bus.
func TestControllerLeavesTheBus(t *testing.T) {
	server, err := bus.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	conn, err := server.Connect()
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if err := serve(t.Context(), conn, Config{}); err != nil {
		t.Error(err)
	}
}

// TestOrders: what is wrong with an order, or with what is brought for it, is said, and the agent ends by itself.
func TestOrders(t *testing.T) {
	good, path := packed(t, "rdmarun: v1\nroles: {client: {}}\nsteps: [{role: client, log: x}]\n")
	bad, badPath := packed(t, "rdmarun: v1\nroles: {client: {}}\nsteps: [{role: clint, log: x}]\n")
	files := func(path string) lab.Files { return lab.Files{Base: filepath.Dir(path), Folder: filepath.Dir(path)} }
	for name, test := range map[string]struct {
		order  any
		pack   []byte
		reason string
	}{
		"no order":          {[]int{1}, nil, "the order cannot be read"},
		"nothing":           {lab.Order{}, nil, "its digest differs"},
		"too much":          {lab.Order{Length: lab.MaxPack + 1}, nil, "are too many"},
		"less than nothing": {lab.Order{Length: -1}, nil, "are too many"},
		"another pack":      {lab.Order{Pack: digest(bad), Length: len(good)}, good, "its digest differs"},
		"a shorter pack":    {lab.Order{Pack: digest(good), Length: len(good) + 5}, good, "are not a part of the pack"},
		"no pack":           {lab.Order{Pack: digest([]byte("x")), Length: 1}, []byte("x"), "not a pack of rdmarun"},
		"another file": {
			lab.Order{Pack: digest(good), Length: len(good), Files: files(path), Scenarios: []string{"/etc/passwd"}},
			good, "cannot be read",
		},
		"a file of the host": {
			lab.Order{
				Pack: digest(good), Length: len(good), Files: files(path),
				Scenarios: []string{"/proc/self/fd/../../../etc/passwd"},
			},
			good, "cannot be read",
		},
		"a way out": {
			lab.Order{
				Pack: digest(good), Length: len(good), Files: files(path),
				Scenarios: []string{filepath.Dir(path) + "/../../../../../../etc/passwd"},
			},
			good, "cannot be read",
		},
		"an open file": {
			lab.Order{
				Pack: digest(good), Length: len(good), Files: files(path), Scenarios: []string{"/proc/self/fd/0"},
			},
			good, "cannot be read",
		},
		"a wrong scenario": {
			lab.Order{Pack: digest(bad), Length: len(bad), Files: files(badPath), Scenarios: []string{badPath}}, bad,
			`"clint"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			c.bring(t, test.pack)
			if reason := c.order(t, test.order); !strings.Contains(reason, test.reason) {
				t.Errorf("%q, not %q", reason, test.reason)
			}
			<-c.ended
			c.close()
		})
	}
}

// TestControllerGone: an agent ends if its controller goes while it waits for the others.
func TestControllerGone(t *testing.T) {
	archive, path := packed(t, "rdmarun: v1\nroles: {client: {}, server: {}}\nsteps: [{role: client, log: x}]\n")
	c := start(t)
	c.bring(t, archive)
	order := lab.Order{
		Pack: digest(archive), Length: len(archive),
		Files:     lab.Files{Base: filepath.Dir(path), Folder: filepath.Dir(path)},
		Scenarios: []string{path}, Cases: []string{path}, Roles: []string{"client"}, Provider: "soft", Link: "udp",
		Process: "a", Controller: "the controller",
	}
	if reason := c.order(t, order); reason != "" {
		t.Fatal(reason)
	}
	c.close()
	select {
	case <-c.ended:
	case <-time.After(waitLimit):
		t.Error("it does not end")
	}
}

func TestStrangers(t *testing.T) {
	for _, line := range []string{"", "hello\n", "rdmarun-agent 1 x\n", strings.Repeat("x", 1<<20) + "\n"} {
		var output bytes.Buffer
		err := Serve(t.Context(), strings.NewReader(line), &output, func() error { return nil }, Config{Die: func() {}})
		if err == nil || output.Len() > 0 {
			t.Errorf("%.20q: %v, %q", line, err, output.String())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	silent, held := io.Pipe()
	if err := Serve(ctx, silent, io.Discard, func() error { return nil }, Config{Die: func() {}}); err == nil {
		t.Error("no message has come")
	}
	held.Close()
}

// TestAllow: what the owner of a host does not allow is refused, with the word and the remedy.
func TestAllow(t *testing.T) {
	const roles = "rdmarun: v1\nroles: {server: {}, client: {provider: {soft: {}}}}\nsteps:\n"
	const measures = "  - {measure: {kind: latency, op: SEND, from: client, to: server, sizes: [64], iterations: 10}}\n"
	for name, test := range map[string]struct {
		allow       []string
		roles       []string
		steps, want string
		provider    string
	}{
		"all":        {nil, []string{"client", "server"}, measures, "", "verbs"},
		"soft alone": {[]string{"soft"}, []string{"client"}, "  - {role: client, log: x}\n", "", "soft"},
		"verbs for no role here": {
			[]string{"soft"}, []string{"client"}, "  - {role: client, log: x}\n",
			`its owner does not allow "verbs", and the run is on it`, "verbs",
		},
		"verbs": {
			[]string{"soft"}, []string{"server"}, "  - {role: client, log: x}\n",
			`its owner does not allow "verbs", and role server is on it`, "verbs",
		},
		"soft": {
			[]string{"verbs"}, []string{"client"}, "  - {role: client, log: x}\n",
			`its owner does not allow "soft", and role client is on it`, "soft",
		},
		"measure": {
			[]string{"soft"}, []string{"client"}, measures,
			`its owner does not allow "measure", and case.yaml:4 is a measure`, "soft",
		},
		"no such provider": {
			[]string{"soft"}, []string{"client"}, "  - {role: client, log: x}\n",
			`does not allow "\x1b", and the run is on it`, "\x1b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			archive, path := packed(t, roles+test.steps)
			c := start(t, test.allow...)
			c.bring(t, archive)
			reason := c.order(t, lab.Order{
				Pack: digest(archive), Length: len(archive),
				Files:     lab.Files{Base: filepath.Dir(path), Folder: filepath.Dir(path)},
				Scenarios: []string{path}, Cases: []string{path}, Roles: test.roles, Provider: test.provider,
				Process: "a", Controller: "the controller",
			})
			if test.want == "" && reason != "" || !strings.Contains(reason, test.want) {
				t.Errorf("%q, not %q", reason, test.want)
			}
			c.close()
			<-c.ended
		})
	}
	c := start(t, "soft")
	if examined := c.examine(t, lab.Look{Provider: "verbs"}); !strings.Contains(
		examined.Error, `rdmarun agent --allow soft,verbs`,
	) {
		t.Errorf("%+v", examined)
	}
	c.close()
	<-c.ended
}

// TestAllowSteps: what runs here asks before each step, whatever the order was.
func TestAllowSteps(t *testing.T) {
	archive, path := packed(t, "rdmarun: v1\nroles: {client: {}}\nsteps: [{role: client, log: x}]\n")
	order := lab.Order{
		Files: lab.Files{Base: filepath.Dir(path), Folder: filepath.Dir(path)}, Scenarios: []string{path},
		Cases: []string{path}, Roles: []string{"client"}, Provider: "soft",
	}
	opened := func(string, *scenario.RunConfig) (func() error, error) { return func() error { return nil }, nil }
	for _, allow := range [][]string{nil, {"soft"}} {
		r := &run{order: &order, files: make(files), config: Config{Version: "v1", Allow: allow, Open: opened}}
		if _, err := pack.Each(bytes.NewReader(archive), r.files.create); err != nil {
			t.Fatal(err)
		}
		if err := r.ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.files.close()
		if err := r.settings.Allow(scenario.Need{What: "soft"}); err != nil {
			t.Error(err)
		}
		err := r.settings.Allow(scenario.Need{What: scenario.NeedMeasure, For: "it is one"})
		if (err == nil) != (allow == nil) ||
			err != nil && err.Error() != `its owner does not allow "measure", and it is one` {
			t.Error(allow, err)
		}
	}
}

// FuzzOrder makes a controller send any order to an agent that has the pack. The agent answers, reads nothing but the
// pack, and needs no more than its owner allows.
func FuzzOrder(f *testing.F) {
	const text = "rdmarun: v1\nroles: {client: {}, server: {}}\nsteps: [{role: client, log: x}]\n"
	for _, seed := range []string{
		`{}`, `{"length":-1}`, `{"scenarios":["/proc/self/fd/../../../etc/passwd"],"files":{"base":"/"}}`,
		`{"scenarios":["case.yaml"],"cases":["case.yaml"],"roles":["client"],"provider":"soft"}`,
		`{"scenarios":["case.yaml"],"cases":["case.yaml"],"roles":["client"],"provider":"verbs"}`,
		`{"scenarios":["case.yaml"],"provider":"\u001b","places":{"client":{}},"hosts":{"client":-9223372036854775808}}`,
		`{"scenarios":["../case.yaml","case.yaml/..","","/"],"files":{"base":"..","folder":"../..","archives":{"":"/etc","/":"","/proc/self/fd":"/"}}}`,
		`{"scenarios":["case.yaml"],"cases":["case.yaml"],"given":{"x":"1"},"environment":{"PATH":"/"},"time_scale":-1e308,"stall":-1,"silence":-5,"seed":18446744073709551615}`, `[]`, `null`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var order lab.Order
		if json.Unmarshal(data, &order) != nil {
			return
		}
		archive, path := packed(t, text)
		r := &run{order: &order, files: make(files),
			config: Config{Version: "v1", Allow: []string{"soft"},
				Open: func(name string, _ *scenario.RunConfig) (func() error, error) {
					if name != "soft" {
						t.Errorf("%q is opened", name)
					}
					return func() error { return nil }, nil
				}}}
		if _, err := pack.Each(bytes.NewReader(archive), r.files.create); err != nil {
			t.Fatal(err)
		}
		defer r.files.close()
		if order.Files.Base == "" {
			order.Files.Base, order.Files.Folder = filepath.Dir(path), filepath.Dir(path)
		}
		locate := r.files.locate(order.Files)
		for _, each := range order.Scenarios {
			if found := locate(each); !r.files.opens(found) &&
				!strings.HasPrefix(found, "/proc/self/fd/not in the pack") {
				t.Errorf("%q leads to %q", each, found)
			}
		}
		if err := r.ready(t.Context()); err != nil {
			_ = err.Error()
		}
	})
}
