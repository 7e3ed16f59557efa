package control

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rdmarun/host/bus"
	"rdmarun/host/lab"
	"rdmarun/host/lab/launch"
)

func TestMain(m *testing.M) {
	if os.Getenv(briefAgent) != "" {
		answerOrder()
		os.Exit(0)
	}
	if mode := os.Getenv(agentMode); mode != "" {
		beAgent(mode)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// briefAgent has this program be an agent that takes its order, and is silent then.
const briefAgent = "RDMARUN_TEST_BRIEF_AGENT"

func answerOrder() {
	if conn := greet(); conn != nil {
		_, _ = conn.Listen(
			func(msg *bus.Message) { _ = msg.Respond([]byte("{}")) }, bus.To(conn.Name(), lab.SubjectOrder),
		)
	}
	time.Sleep(time.Hour)
}

// greet answers the controller's greeting and connects to the bus; nil where that fails.
func greet() *bus.Conn {
	type pipe struct {
		io.Reader
		io.WriteCloser
	}
	input := bufio.NewReader(os.Stdin)
	line, _ := input.ReadString('\n')
	who, err := lab.ParseGreeting(line)
	if err != nil {
		return nil
	}
	fmt.Println(lab.NewAnswer("v1"))
	conn, err := bus.Over(who, pipe{input, os.Stdout})
	if err != nil {
		return nil
	}
	return conn
}

// TestSilentAfterOrder: an agent that is silent when it has its order is given up as one that was before, and is not
// waited for.
func TestSilentAfterOrder(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	host := lab.Host{Name: "a", Command: []string{"env", briefAgent + "=1"}, Silence: time.Second}
	c, err := Start(ctx, []lab.Host{host}, launch.Config{
		Program: os.Args[0], Version: "v1", Print: func(string, string) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Order(ctx, nil, func(lab.Host) lab.Order { return lab.Order{} }); err != nil {
		t.Error(err)
	}
	watched, stop := c.Watch(ctx)
	<-watched.Done()
	err = stop()
	var failed *HostError
	if ctx.Err() != nil || !errors.As(err, &failed) || failed.Hint() == "" ||
		!strings.Contains(err.Error(), "host a: its agent has answered nothing for 1s") {
		t.Errorf("%v, %v", ctx.Err(), err)
	}
	if killed, left := c.Close(); len(killed)+len(left) > 0 {
		t.Errorf("its end was waited for: %q %q", killed, left)
	}
}

// TestHosts: hosts with kept agents take part, and the others have ended; one that cannot be started is named.
func TestHosts(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var hosts []lab.Host
	for _, name := range []string{"a", "b", "c"} {
		hosts = append(hosts, lab.Host{Name: name, Command: []string{"env", briefAgent + "=1"}, Silence: time.Second})
	}
	hosts[2].Command = []string{"sh", "-c", "echo no route >&2; exit 255"}
	c, err := Start(ctx, hosts, launch.Config{Program: os.Args[0], Version: "v1", Print: func(string, string) {}})
	var failed *HostError
	if c == nil || !errors.As(err, &failed) || failed.Host != "c" || !strings.Contains(err.Error(), "no route") {
		t.Fatal(err)
	}
	defer c.Close()
	names := func() (list []string) {
		for _, host := range c.Hosts() {
			list = append(list, host.Name)
		}
		return list
	}
	if got := names(); !slices.Equal(got, []string{"a", "b"}) || len(c.Members()) != 2 {
		t.Errorf("%q, %v", got, c.Members())
	}
	c.Keep(hosts[:1])
	if got := names(); !slices.Equal(got, []string{"a"}) || c.Gone("a") || !c.Gone("b") || !c.Gone("c") {
		t.Errorf("%q are there; a, b and c are gone: %v, %v, %v", got, c.Gone("a"), c.Gone("b"), c.Gone("c"))
	}
	if why := c.Why("b", "has ended"); why != "has ended" {
		t.Error(why)
	}
	if why := c.Why("a", "says nothing"); why != "says nothing" || !c.Gone("a") {
		t.Errorf("%s, and a is gone: %v", why, c.Gone("a"))
	}
}

// TestAwaited: missing hosts are named until all have come.
func TestAwaited(t *testing.T) {
	reported := make(chan string, 1)
	a := await([]lab.Host{{Name: "a"}, {Name: "b"}, {Name: "c"}}, func(come, hosts int, missing []string) {
		reported <- fmt.Sprint(come, hosts, missing)
	})
	a.come(1)
	if got := <-reported; got != "1 3 [a c]" {
		t.Error(got)
	}
	a.come(0)
	a.come(2)
	a.over()
	if await(nil, nil).over(); len(a.missing) != 0 {
		t.Errorf("%v", a.missing)
	}
}

// TestPartOfPack: an agent may ask for a part at any time, also while the pack is set.
func TestPartOfPack(t *testing.T) {
	c := &Controller{}
	pack := []byte("the files of a run")
	done := make(chan error)
	go func() { done <- c.Order(t.Context(), pack, nil) }()
	for range 100 {
		c.servePart(&bus.Message{Data: []byte(`{"pack":"","offset":0}`)}) // the answer is not used
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if c.mu.Lock(); string(c.pack) != string(pack) || len(c.digest) != 64 {
		t.Errorf("%q, %q", c.pack, c.digest)
	}
	c.mu.Unlock()
}

// Agents that answer the greeting, and then nothing, or nonsense, end the run with a sentence and not with its time.
func TestAgentsThatAreSilent(t *testing.T) {
	const waitLimit = time.Minute
	for name, then := range map[string]string{
		"nothing": "exec sleep 1000", "no NATS": "while sleep 0.05; do echo hello; done",
		"half a message": `printf "MSG x 1 100\r\nabc"; exec sleep 1000`,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
			defer cancel()
			answer := lab.NewAnswer("v1")
			answer.Process = ""
			script := fmt.Sprintf("read greeting; echo '%s'; %s", strings.TrimSpace(answer.String()), then)
			host := lab.Host{Name: "a", Command: []string{"sh", "-c", script, "--"}, Silence: time.Second}
			c, err := Start(ctx, []lab.Host{host}, launch.Config{
				Program: "rdmarun", Version: "v1", Print: func(string, string) {},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			found := c.Examine(ctx, func(lab.Host) lab.Look { return lab.Look{Provider: "soft"} })
			ordered := c.Order(ctx, nil, func(lab.Host) lab.Order { return lab.Order{} })
			if ctx.Err() != nil {
				t.Fatal("the time of the test was over first")
			}
			const silent = "its agent has answered nothing for 1s"
			if ended := "its agent has ended"; ordered == nil ||
				!strings.Contains(ordered.Error(), silent) && !strings.Contains(ordered.Error(), ended) {
				t.Errorf("order: %v", ordered)
			}
			if name == "nothing" &&
				(!strings.Contains(found["a"].Error, silent) || !strings.Contains(found["a"].Error, "silence: 60s")) {
				t.Errorf("examine: %+v", found["a"])
			}
		})
	}
}
