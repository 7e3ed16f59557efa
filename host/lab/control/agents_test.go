package control

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"rdmarun/host/bus"
	"rdmarun/host/lab"
	"rdmarun/host/lab/launch"
)

// agentMode has this program be an agent of some kind.
const agentMode = "RDMARUN_TEST_AGENT"

// beAgent answers a controller. "good" answers as an agent does, with a clock that is ahead by what follows "good".
// "refuses" rejects an order, "nonsense" answers nonsense, "dies" exits at an order, and "stays" continues after the
// end of its input.
func beAgent(mode string) {
	conn := greet()
	if conn == nil {
		return
	}
	mode, ahead, _ := strings.Cut(mode, " ")
	shift, _ := time.ParseDuration(ahead)
	answer := func(what string, with func(*bus.Message) []byte) {
		_, _ = conn.Listen(func(msg *bus.Message) { _ = msg.Respond(with(msg)) }, bus.To(conn.Name(), what))
	}
	answer(lab.SubjectClock, func(*bus.Message) []byte {
		if mode == "nonsense" {
			return []byte("soon")
		}
		return strconv.AppendInt(nil, time.Now().Add(shift).UnixNano(), 10)
	})
	answer(lab.SubjectExamine, func(msg *bus.Message) []byte {
		if mode == "nonsense" {
			return []byte("[]")
		}
		var look lab.Look
		_ = json.Unmarshal(msg.Data, &look)
		raw, _ := json.Marshal(lab.Examined{Version: "v1", Device: strings.Join(look.Devices, "+"), MTU: 1024})
		return raw
	})
	answer(lab.SubjectOrder, func(msg *bus.Message) []byte {
		var done lab.Done
		switch mode {
		case "nonsense":
			return []byte("{")
		case "refuses":
			done = lab.Done{Error: "there is no device mlx5_9\x1b", Hint: "name another device"}
		case "dies":
			fmt.Fprintln(os.Stderr, "out of memory")
			os.Exit(9)
		default:
			done.Error = fetch(conn, msg.Data)
		}
		raw, _ := json.Marshal(done)
		return raw
	})
	<-conn.Closed()
	if mode == "stays" {
		time.Sleep(time.Hour)
	}
}

// fetch fetches the pack of an order in its parts, and reports packets before it answers; "" is success.
func fetch(conn *bus.Conn, data []byte) (failure string) {
	var order lab.Order
	if err := json.Unmarshal(data, &order); err != nil {
		return err.Error()
	}
	var pack []byte
	for {
		raw, _ := json.Marshal(lab.Part{Pack: order.Pack, Offset: len(pack)})
		part, err := conn.Request(context.Background(), bus.From(conn.Name(), lab.SubjectPart), raw)
		if err != nil {
			return err.Error()
		}
		if len(part) == 0 {
			break
		}
		pack = append(pack, part...)
	}
	if digest := fmt.Sprintf("%x", sha256.Sum256(pack)); digest != order.Pack || len(pack) != order.Length {
		return fmt.Sprintf("%d bytes with digest %s of %d with %s", len(pack), digest, order.Length, order.Pack)
	}
	for i := range 3 {
		if order.Process == "" {
			break
		}
		packets := fmt.Appendf(nil, "%s %d", order.Process, i)
		if _, err := conn.Request(
			context.Background(), bus.From(conn.Name(), lab.SubjectPackets), packets,
		); err != nil {
			return err.Error()
		}
	}
	return ""
}

// start starts agents of these kinds, by the names of their hosts.
func start(t *testing.T, modes map[string]string) (*Controller, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	var hosts []lab.Host
	for _, name := range slices.Sorted(maps.Keys(modes)) {
		hosts = append(hosts, lab.Host{Name: name, Command: []string{"env", agentMode + "=" + modes[name]}})
	}
	c, err := Start(ctx, hosts, launch.Config{Program: os.Args[0], Version: "v1", Print: func(string, string) {}})
	if err != nil {
		t.Fatal(err)
	}
	return c, ctx
}

// TestOrders: each host has its own order and the whole pack, in parts. What one cannot do is named with its host and
// the remedy, and the others are ready.
func TestOrders(t *testing.T) {
	c, ctx := start(t, map[string]string{"a": "good", "b": "refuses", "c": "dies", "d": "nonsense", "e": "good"})
	defer c.Close()
	pack := make([]byte, 2*lab.PartBytes+17)
	for i := range pack {
		pack[i] = byte(i % 251)
	}
	var mu sync.Mutex
	var asked []string
	err := c.Order(ctx, pack, func(host lab.Host) lab.Order {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, host.Name)
		return lab.Order{}
	})
	if slices.Sort(asked); !slices.Equal(asked, []string{"a", "b", "c", "d", "e"}) {
		t.Errorf("orders of %q", asked)
	}
	joined, is := err.(interface{ Unwrap() []error })
	if !is || len(joined.Unwrap()) != 3 {
		t.Fatalf("%v", err)
	}
	for i, want := range []struct{ host, text, hint string }{
		{"b", "host b: there is no device mlx5_9␛", "name another device"},
		{"c", "host c: its agent has ended: out of memory", ""},
		{"d", "host d: its agent's answer cannot be read", ""},
	} {
		var failed *HostError
		if each := joined.Unwrap()[i]; !errors.As(each, &failed) || failed.Host != want.host ||
			!strings.HasPrefix(each.Error(), want.text) || failed.Hint() != want.hint {
			t.Errorf("%v, %q", each, failed.Hint())
		}
	}
	if !c.Gone("c") || c.Gone("a") {
		t.Errorf("c is gone: %v, a is gone: %v", c.Gone("c"), c.Gone("a"))
	}
	if why := c.Why("c", "has ended unexpectedly"); why != "has ended unexpectedly (out of memory)" {
		t.Error(why)
	}
}

// TestExamine: each host is asked for what its own roles need; of one that cannot answer its error is shown.
func TestExamine(t *testing.T) {
	c, ctx := start(t, map[string]string{"a": "good", "b": "nonsense"})
	defer c.Close()
	look := func(host lab.Host) lab.Look { return lab.Look{Provider: "soft", Devices: []string{"dev", host.Name}} }
	found := c.Examine(ctx, look)
	if got := found["a"]; len(found) != 2 || got.Error != "" || got.Device != "dev+a" || got.MTU != 1024 {
		t.Errorf("%+v", found)
	}
	if got := found["b"]; !strings.Contains(got.Error, "invalid self-description") || got.Device != "" {
		t.Errorf("%+v", got)
	}
	over, cancel := context.WithCancelCause(ctx)
	cancel(errors.New("the user has had enough"))
	for host, got := range c.Examine(over, look) {
		if !strings.Contains(got.Error, "it does not answer") {
			t.Errorf("%s: %+v", host, got)
		}
	}
	if err := c.Order(over, nil, func(lab.Host) lab.Order { return lab.Order{} }); err == nil ||
		!strings.Contains(err.Error(), "host a: the user has had enough") || c.Gone("a") || c.Gone("b") {
		t.Errorf("%v; a is gone: %v, b is gone: %v", err, c.Gone("a"), c.Gone("b"))
	}
}

// TestClocks: the clocks of hosts are known within the half of a round trip; a host that does not know the time has
// none.
func TestClocks(t *testing.T) {
	c, ctx := start(t, map[string]string{"a": "good 1h", "b": "good -5s", "c": "nonsense", "d": "good"})
	defer c.Close()
	c.Examine(ctx, func(lab.Host) lab.Look { return lab.Look{} }) // until all listen
	clocks := c.Clocks(ctx)
	for host, ahead := range map[string]time.Duration{"a": time.Hour, "b": -5 * time.Second, "d": 0} {
		clock, known := clocks[host]
		if off := (clock.Ahead - ahead).Abs(); !known || off > clock.Within || clock.Within > clockTime {
			t.Errorf("%s is %s ahead within %s, not %s", host, clock.Ahead, clock.Within, ahead)
		}
	}
	if clock, known := clocks["c"]; known {
		t.Errorf("c: %+v", clock)
	}
}

// TestHandle: reports of agents come under the names of their hosts, those of each in order. Each is answered when it
// was accepted. A report of no agent is answered and dropped.
func TestHandle(t *testing.T) {
	c, ctx := start(t, map[string]string{"a": "good", "b": "good"})
	defer c.Close()
	taken := make(map[string][]string) // one goroutine takes it
	if err := c.Handle(func(host, what string, data []byte) {
		taken[host] = append(taken[host], what+" "+string(data))
	}, lab.SubjectPackets, lab.SubjectCaptured); err != nil {
		t.Fatal(err)
	}
	who := bus.NewCredentials()
	here, there := net.Pipe()
	go func() { _ = c.Server().Serve(ctx, who, here) }()
	stranger, err := bus.Over(who, there)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	answer, err := stranger.Request(ctx, bus.From(who.Name, lab.SubjectPackets), []byte("mine"))
	if err != nil || len(answer) != 0 {
		t.Errorf("a stranger is answered %q, %v", answer, err)
	}
	if err := c.Order(ctx, nil, func(host lab.Host) lab.Order {
		return lab.Order{Process: "of " + host.Name}
	}); err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"a", "b"} {
		want := []string{"packets of " + host + " 0", "packets of " + host + " 1", "packets of " + host + " 2"}
		if !slices.Equal(taken[host], want) {
			t.Errorf("%s: %q", host, taken[host])
		}
	}
	if len(taken) != 2 {
		t.Errorf("%q", taken)
	}
}

// TestParts: a part of the pack begins where an agent requests it. A request of no agent of this lab has no answer.
func TestParts(t *testing.T) {
	c, ctx := start(t, map[string]string{"a": "good"})
	defer c.Close()
	pack := bytes.Repeat([]byte("0123456789"), lab.PartBytes/10+2)
	if err := c.Order(ctx, pack, func(lab.Host) lab.Order { return lab.Order{} }); err != nil {
		t.Fatal(err)
	}
	digest := c.digest
	who := bus.NewCredentials()
	here, there := net.Pipe()
	go func() { _ = c.Server().Serve(ctx, who, here) }()
	conn, err := bus.Over(who, there)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	part := func(pack string, offset int) string { return fmt.Sprintf(`{"pack":%q,"offset":%d}`, pack, offset) }
	for name, test := range map[string]struct {
		ask  string
		want []byte
	}{
		"the beginning":   {part(digest, 0), pack[:lab.PartBytes]},
		"the middle":      {part(digest, 7), pack[7 : 7+lab.PartBytes]},
		"the last byte":   {part(digest, len(pack)-1), pack[len(pack)-1:]},
		"the end":         {part(digest, len(pack)), nil},
		"beyond the end":  {part(digest, len(pack)+1), nil},
		"before all":      {part(digest, -1), nil},
		"of another pack": {part(strings.Repeat("0", 64), 0), nil},
		"without a pack":  {`{"offset":0}`, nil},
		"no JSON":         {`{`, nil},
		"a large offset":  {`{"pack":"` + digest + `","offset":1e99}`, nil},
	} {
		got, err := conn.Request(ctx, bus.From(who.Name, lab.SubjectPart), []byte(test.ask))
		if err != nil || !bytes.Equal(got, test.want) {
			t.Errorf("%s: %d bytes, %.20q, %v", name, len(got), got, err)
		}
	}
}

// TestEnds: agents end when the controller does; those that do not are killed and named, in order, and those that had
// ended are not.
func TestEnds(t *testing.T) {
	t.Parallel()
	c, ctx := start(t, map[string]string{"c": "stays", "a": "stays", "b": "good", "d": "dies"})
	_ = c.Order(ctx, nil, func(lab.Host) lab.Order { return lab.Order{} })
	watched, stop := c.Watch(ctx)
	if err := stop(); err != nil || watched.Err() == nil {
		t.Errorf("nothing was silent: %v, %v", err, watched.Err())
	}
	killed, left := c.Close()
	if !slices.Equal(killed, []string{"a", "c"}) || left != nil {
		t.Errorf("%q were killed, %q may be there still", killed, left)
	}
	for _, host := range c.Hosts() {
		if !c.Gone(host.Name) {
			t.Errorf("%s is there", host.Name)
		}
	}
}

// TestStartIsCancelled: without time to start, each host is named, and nothing of them is left.
func TestStartIsCancelled(t *testing.T) {
	over, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	hosts := []lab.Host{
		{Name: "a", Command: []string{"env", agentMode + "=good"}},
		{Name: "b", Command: []string{"sh", "-c", "exec sleep 1000", "--"}},
	}
	c, err := Start(over, hosts, launch.Config{Program: os.Args[0], Version: "v1", Print: func(string, string) {}})
	if c == nil || err == nil || !strings.Contains(err.Error(), "host b: ") {
		t.Fatalf("%v", err)
	}
	if !c.Gone("b") || len(c.Hosts()) > 1 {
		t.Errorf("%v are there", c.Hosts())
	}
	if killed, left := c.Close(); len(killed)+len(left) > 0 {
		t.Errorf("%q, %q", killed, left)
	}
}
