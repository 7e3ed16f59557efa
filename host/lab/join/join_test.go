package join

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rdmarun/host/bus/bustest"
	"rdmarun/host/bus/tunnel"
	"rdmarun/host/lab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds what must come at all.
const patience = time.Minute

// log keeps what is said.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) say(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, text)
}

func (l *log) await(t *testing.T, what string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		l.mu.Lock()
		said := strings.Join(l.lines, "\n")
		l.mu.Unlock()
		if strings.Contains(said, what) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("nothing says %q: %s", what, said)
		}
	}
}

func connect(t *testing.T, server *bustest.Server) *tunnel.Conn { return connectAs(t, server, "") }

func connectAs(t *testing.T, server *bustest.Server, user string) *tunnel.Conn {
	t.Helper()
	conn, err := tunnel.Connect(tunnel.Options{URL: server.URL(user), Name: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// serve has an agent wait whose process is a line of shell; its log, and what ends it.
func serve(t *testing.T, server *bustest.Server, name, script string, labels map[string]string) (*log, func() error) {
	t.Helper()
	return serveOn(t, connect(t, server), name, script, labels)
}

func serveOn(t *testing.T, conn *tunnel.Conn, name, script string, labels map[string]string) (*log, func() error) {
	t.Helper()
	said := &log{}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, conn, Config{
			Name: name, Version: "v1", Labels: labels, Program: "/bin/sh", Words: []string{"sh", "-c", script}, Environment: os.Environ(), Log: said.say,
		})
	}()
	stop := sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { _ = stop() })
	said.await(t, name+" waits on nats://")
	return said, stop
}

func controller(t *testing.T, server *bustest.Server, wait time.Duration) (*Lab, *log) {
	t.Helper()
	said := &log{}
	return &Lab{Conn: connect(t, server), Holder: "lab@\x1b[2Jhere", Wait: wait, Say: said.say}, said
}

func lease(t *testing.T, l *Lab, agent string, printed *log) *Leased {
	t.Helper()
	leased, err := l.Lease(t.Context(), agent, func(line []byte) { printed.say(string(line)) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { leased.Close() })
	return leased
}

// TestLease: an agent serves one run, says whose, passes on what its process says and how it ends, and serves the next.
func TestLease(t *testing.T) {
	server := bustest.Start(t, bustest.Config{})
	serve(t, server, "a.b", `read line; echo "got $line"; echo a complaint >&2; cat >/dev/null; exit 3`, nil)
	l, _ := controller(t, server, 0)
	for range 2 {
		printed := &log{}
		leased := lease(t, l, "a.b", printed)
		_, err := l.Lease(t.Context(), "a.b", nil)
		var held *HeldError
		if !errors.As(err, &held) || !strings.HasPrefix(held.Error(), "its agent serves lab@␛[2Jhere, since 2") || held.Hint() == "" {
			t.Errorf("%v", err)
		}
		waits := *l
		waits.Wait = time.Millisecond
		if _, err := waits.Lease(t.Context(), "a.b", nil); !errors.As(err, &held) || !strings.HasSuffix(held.Error(), "; this run has waited for 1ms") ||
			held.Hint() != "a longer --wait, or another host" {
			t.Errorf("%v", err)
		}
		if present, err := l.Agents(t.Context(), "a.b"); err != nil || len(present) != 1 || present[0].Holder != held.Holder || present[0].Version != "v1" {
			t.Errorf("%+v %v", present, err)
		}
		if _, err := fmt.Fprintln(leased, "words"); err != nil {
			t.Fatal(err)
		}
		if err := leased.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if said, err := io.ReadAll(leased); string(said) != "got words\n" || err != nil {
			t.Errorf("%q %v", said, err)
		}
		<-leased.Ended()
		if leased.How() != "exit status 3" {
			t.Errorf("%q", leased.How())
		}
		printed.await(t, "a complaint")
	}
}

// TestWait: who waits for an agent has it once it is free.
func TestWait(t *testing.T) {
	server := bustest.Start(t, bustest.Config{})
	serve(t, server, "a", "cat", nil)
	first, _ := controller(t, server, 0)
	held := lease(t, first, "a", &log{})
	second, said := controller(t, server, patience)
	came := make(chan error, 1)
	go func() {
		leased, err := second.Lease(context.Background(), "a", nil)
		if err == nil {
			leased.Close()
		}
		came <- err
	}()
	said.await(t, "host a: its agent serves lab@␛[2Jhere")
	held.Close()
	if err := <-came; err != nil {
		t.Error(err)
	}
	impatient, cancel := context.WithCancelCause(t.Context())
	lease(t, second, "a", &log{})
	cancel(errors.New("enough"))
	if _, err := second.Lease(impatient, "a", nil); err == nil || err.Error() != "enough" {
		t.Error(err)
	}
}

// TestProcessesLeft: what does not end with its controller is killed, and so is what an agent has that is stopped.
func TestProcessesLeft(t *testing.T) {
	server := bustest.Start(t, bustest.Config{})
	folder := t.TempDir()
	script := "trap '' TERM; echo $$ >" + folder + "/pid.new; mv " + folder + "/pid.new " + folder + "/pid; while :; do sleep 100; done"
	_, stop := serve(t, server, "a", script, nil)
	l, _ := controller(t, server, patience)
	running := func() string {
		for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
			if pid, err := os.ReadFile(filepath.Join(folder, "pid")); err == nil {
				_ = os.Remove(filepath.Join(folder, "pid"))
				return strings.TrimSpace(string(pid))
			}
			if time.Now().After(end) {
				t.Fatal("no process starts")
			}
		}
	}
	gone := func(pid string) {
		for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
			if _, err := os.Stat("/proc/" + pid); err != nil {
				return
			}
			if time.Now().After(end) {
				t.Fatal("its process is left")
			}
		}
	}
	first := lease(t, l, "a", &log{})
	pid := running()
	first.Close()
	gone(pid)
	printed := &log{}
	second := lease(t, l, "a", printed)
	pid = running()
	if err := stop(); err != nil {
		t.Error(err)
	}
	<-second.Ended()
	gone(pid)
	printed.await(t, "the agent is stopped")
}

// TestNames: agents are found by their names and labels; two of one name, and one that is not there, are errors.
func TestNames(t *testing.T) {
	server := bustest.Start(t, bustest.Config{})
	serve(t, server, "a", "cat", map[string]string{"rack": "r1"})
	serve(t, server, "b", "cat", nil)
	l, said := controller(t, server, 0)
	present, err := l.Agents(t.Context())
	if err != nil || len(present) != 2 || present[0].Name != "a" || present[0].Labels["rack"] != "r1" || present[1].Name != "b" {
		t.Errorf("%+v %v", present, err)
	}
	err = Serve(t.Context(), connect(t, server), Config{Name: "a", Log: said.say})
	if err == nil || !strings.Contains(err.Error(), `there is an agent "a" on nats://`) {
		t.Error(err)
	}
	_, err = l.Lease(t.Context(), "c", nil)
	var missing *missingError
	if !errors.As(err, &missing) || !strings.HasSuffix(err.Error(), ", but a, b") || missing.Hint() == "" {
		t.Error(err)
	}
	// One that says what cannot be is left out, and the others are there.
	liar := connect(t, server)
	if err := liar.Answer(subjectAgents, func([]byte) []byte { return []byte(`{"name":"../x"}`) }); err != nil {
		t.Fatal(err)
	}
	if present, err := l.Agents(t.Context()); err != nil || len(present) != 2 {
		t.Errorf("%+v %v", present, err)
	}
	said.await(t, `one is left out: "../x" cannot be the name of a host`)
}

// TestPermissions: those that docs/reference/lab.md names are enough.
func TestPermissions(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/lab.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^(?:agent a|a controller): +(publish .*)$`).FindAllStringSubmatch(string(text), -1)
	if len(lines) != 2 {
		t.Fatalf("%q", lines)
	}
	server := bustest.Start(t, bustest.Config{File: fmt.Sprintf(
		"authorization: {users: [\n{user: agent, password: x, permissions: {%s}}\n{user: controller, password: x, permissions: {%s}}\n]}\n",
		// A colon for the lists of the documentation's short form.
		strings.NewReplacer("publish [", "publish: [", "subscribe [", "subscribe: [").Replace(lines[0][1]),
		strings.NewReplacer("publish [", "publish: [", "subscribe [", "subscribe: [").Replace(lines[1][1]),
	)})
	serveOn(t, connectAs(t, server, "agent:x"), "a", "read line; echo $line; exit 3", nil)
	l := &Lab{Conn: connectAs(t, server, "controller:x"), Holder: "lab", Say: (&log{}).say}
	if present, err := l.Agents(t.Context()); err != nil || len(present) != 1 {
		t.Errorf("%v %v", present, err)
	}
	leased := lease(t, l, "a", &log{})
	if _, err := fmt.Fprintln(leased, "words"); err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(leased); string(said) != "words\n" || err != nil {
		t.Errorf("%q %v", said, err)
	}
	if <-leased.Ended(); leased.How() != "exit status 3" {
		t.Errorf("%q", leased.How())
	}
	// What is not permitted is said.
	other := Serve(t.Context(), connectAs(t, server, "agent:x"), Config{Name: "b", Log: (&log{}).say})
	if other == nil || !strings.Contains(strings.ToLower(other.Error()), "permissions violation") {
		t.Error(other)
	}
}

// TestAgentAnswers: what an agent answers to a request is not trusted.
func TestAgentAnswers(t *testing.T) {
	server := bustest.Start(t, bustest.Config{})
	l, _ := controller(t, server, 0)
	for name, test := range map[string]struct{ said, want string }{
		"nothing":       {"", "its answer cannot be read"},
		"a subject":     {`{"stream":">"}`, "its answer makes no sense"},
		"an escape":     {`{"error":"\u001b[2J"}`, "␛[2J"},
		"too much":      {`{"error":"` + strings.Repeat("x", longest) + `"}`, "bytes"},
		"a long holder": {`{"holder":"` + strings.Repeat("x", 5000) + `"}`, strings.Repeat("x", lab.MostText) + "..."},
	} {
		t.Run(name, func(t *testing.T) {
			agent := strings.ReplaceAll(name, " ", "-")
			if err := connect(t, server).Answer(subjectLease(agent), func([]byte) []byte { return []byte(test.said) }); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Lease(t.Context(), agent, nil); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, not %q", err, test.want)
			}
		})
	}
	// A controller that asks what makes no sense is told so.
	for _, asked := range []string{"", "{}", `{"protocol":1,"holder":"x","stream":"a.>"}`, `{"protocol":99,"holder":"x","stream":"ABCDEFGHIJKLMNOPQRSTUVWXYZ"}`} {
		if _, err := parseRequest([]byte(asked)); err == nil {
			t.Errorf("%q is taken", asked)
		}
	}
}

// FuzzAgents has an agent say whatever of itself, and as its answers: what is taken of it can be shown, and names nothing
// outside of its place.
func FuzzAgents(f *testing.F) {
	presence, _ := json.Marshal(Presence{Name: "a.b-c", Version: "v1", Labels: map[string]string{"rack": "r1"}, Holder: "x", Since: time.Unix(0, 0)})
	granted, _ := json.Marshal(grant{Stream: newID()})
	for _, seed := range []string{
		string(presence), string(granted), `{"name":"\u001b"}`, `{"name":"a","labels":{"\n":"x"}}`, `{"holder":"\u001b[2J","since":"9999-12-31T23:59:59Z"}`,
		`{"error":"\u0000"}`, `{"stream":"x.>"}`, `{"error":"::error::x","address":"$(x)"}`, `{"version":"` + strings.Repeat(`\u0001`, 2000) + `"}`, `[]`, ``, `{"error":"\ud800"}`, `{"device":"\u001b","findings":[{"title":"\u001b","status":"\u0007"}]}`,
		lab.NewAnswer("v1").String(), "rdmarun-agent 999999999999999999999 x y",
	} {
		f.Add([]byte(seed))
	}
	shown := func(t *testing.T, texts ...string) {
		for _, text := range texts {
			if len(text) > lab.MostText+6 || lab.Text(text) != text && len(text) <= lab.MostText || strings.ContainsAny(text, "\x1b\x07\x00\n") || strings.HasPrefix(text, "::error") {
				t.Errorf("%q cannot be shown", text)
			}
		}
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		if p, err := parsePresence(said); err == nil {
			if strings.ContainsAny(p.Name, "*>/ ") || len(p.Labels) > mostLabels {
				t.Errorf("%+v", p)
			}
			shown(t, p.Version, p.Holder)
			for name, value := range p.Labels {
				shown(t, name, value)
			}
		} else {
			_ = err.Error()
		}
		if g, err := parseGrant(said); err == nil {
			shown(t, g.Error, g.Holder, (&HeldError{Holder: g.Holder, Since: g.Since}).Error())
			if g.Error+g.Holder == "" && strings.ContainsAny(g.Stream, ".*> ") {
				t.Errorf("%q", g.Stream)
			}
		}
		if r, err := parseRequest(said); err == nil {
			shown(t, r.Holder)
		}
		if done, err := lab.ParseDone(said); err == nil {
			shown(t, done.Error, done.Hint)
		}
		if found, err := lab.ParseExamined(said); err == nil {
			shown(t, found.Error, found.Device, found.GIDType, found.Version)
			if _, err := netip.ParseAddr(found.Address); found.Address != "" && err != nil {
				t.Errorf("%q is no address", found.Address)
			}
			for _, each := range found.Findings {
				shown(t, each.Title, each.Detail, each.Fix, each.ID, string(each.Status))
			}
		}
		if answer, ok := lab.ParseAnswer(string(said)); ok && slices.Contains([]string{answer.Version, answer.Platform}, "") {
			t.Errorf("%+v", answer)
		}
	})
}
