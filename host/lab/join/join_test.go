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

// waitLimit bounds what must come at all.
const waitLimit = time.Minute

// log keeps the messages.
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
	for end := time.Now().Add(waitLimit); ; time.Sleep(time.Millisecond) {
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

// serve has an agent wait, with a line of shell as its process.  It returns its log, and what ends it.
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
			Name: name, Version: "v1", Labels: labels, Program: "/bin/sh", Words: []string{"sh", "-c", script},
			Environment: os.Environ(), Log: said.say,
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
	l := New(connect(t, server), "u", "lab@\x1b[2Jhere")
	l.Wait, l.Say = wait, said.say
	return l, said
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

// TestLease: an agent serves one run and reports its user.  It passes on the output and the end of its process, and
// serves the next run.
func TestLease(t *testing.T) {
	server := bustest.Start(t, bustest.Config{})
	serve(t, server, "a.b", `read line; echo "got $line"; echo a complaint >&2; cat >/dev/null; exit 3`, nil)
	l, _ := controller(t, server, 0)
	for range 2 {
		printed := &log{}
		leased := lease(t, l, "a.b", printed)
		_, err := l.Lease(t.Context(), "a.b", nil)
		var held *heldError
		if !errors.As(err, &held) || !strings.HasPrefix(held.Error(), "its agent serves lab@␛[2Jhere, since 2") ||
			held.Hint() == "" {
			t.Errorf("%v", err)
		}
		waits := *l
		waits.Wait = time.Millisecond
		if _, err := waits.Lease(t.Context(), "a.b", nil); !errors.As(err, &held) ||
			!strings.HasSuffix(held.Error(), "; this run has waited for 1ms") ||
			held.Hint() != "a longer --wait, or another host" {
			t.Errorf("%v", err)
		}
		if present, err := l.Agents(t.Context(), "a.b"); err != nil || len(present) != 1 ||
			present[0].Holder != held.Holder || present[0].Version != "v1" {
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
	second, said := controller(t, server, waitLimit)
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

// TestProcessesLeft: what does not end with its controller is killed. So is what an agent has that is stopped, and what
// a process has started that outlives it.
func TestProcessesLeft(t *testing.T) {
	server := bustest.Start(t, bustest.Config{})
	folder := t.TempDir()
	writes := func(pid string) string {
		return "echo " + pid + " >" + folder + "/pid.new; mv " + folder + "/pid.new " + folder + "/pid; "
	}
	_, stop := serve(t, server, "a", "trap '' TERM; "+writes("$$")+"while :; do sleep 100; done", nil)
	serve(t, server, "b", "sleep 1000 </dev/null >/dev/null 2>&1 & "+writes("$!"), nil)
	l, _ := controller(t, server, waitLimit)
	running := func() string {
		for end := time.Now().Add(waitLimit); ; time.Sleep(time.Millisecond) {
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
		for end := time.Now().Add(waitLimit); ; time.Sleep(time.Millisecond) {
			status, err := os.ReadFile("/proc/" + pid + "/stat")
			if err != nil || strings.Contains(string(status), ") Z ") { // nothing may wait for it any more
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
	<-lease(t, l, "b", &log{}).Ended()
	gone(running())
}

// TestNames: agents are found by their names and labels; two of one name, and one that is not there, are errors.
func TestNames(t *testing.T) {
	server := bustest.Start(t, bustest.Config{})
	serve(t, server, "a", "cat", map[string]string{"rack": "r1"})
	serve(t, server, "b", "cat", nil)
	l, said := controller(t, server, 0)
	present, err := l.Agents(t.Context())
	if err != nil || len(present) != 2 || present[0].Name != "a" || present[0].Labels["rack"] != "r1" ||
		present[1].Name != "b" {
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
	for _, response := range []string{`{"name":"../x"}`, `{"name":"d"}`} {
		err := liar.Answer(caller{"*", "*"}.toAll("*"), func(subject string, _ []byte) (string, []byte) {
			who, id, _ := asked(subject)
			return who.answer("e", id), []byte(response)
		})
		if err != nil {
			t.Fatal(err)
		}
		if present, err := l.Agents(t.Context()); err != nil || len(present) != 2 {
			t.Errorf("%+v %v", present, err)
		}
	}
	said.await(t, `one is left out: "../x" cannot be the name of a host`)
}

// permitted is a server with two agents and two users, each of which may do what docs/reference/lab.md names.
func permitted(t *testing.T) *bustest.Server {
	t.Helper()
	text, err := os.ReadFile("../../../docs/reference/lab.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^(agent|user) [au]: +(publish .*)$`).FindAllStringSubmatch(string(text), -1)
	if len(lines) != 2 {
		t.Fatalf("%q", lines)
	}
	var users strings.Builder
	for _, line := range lines {
		// A colon for the lists of the documentation's short form.
		may := strings.NewReplacer("publish [", "publish: [", "subscribe [", "subscribe: [").Replace(line[2])
		for _, name := range map[string][]string{"agent": {"a", "b"}, "user": {"u", "v"}}[line[1]] {
			own := strings.NewReplacer(".a.", "."+name+".", ".u.", "."+name+".").Replace(may)
			fmt.Fprintf(&users, "{user: %s, password: x, permissions: {%s}}\n", name, own)
		}
	}
	return bustest.Start(t, bustest.Config{File: "authorization: {users: [\n" + users.String() + "]}\n"})
}

// TestPermissions: those that docs/reference/lab.md names are enough for two users and two agents at once.
func TestPermissions(t *testing.T) {
	server := permitted(t)
	for _, agent := range []string{"a", "b"} {
		serveOn(t, connectAs(t, server, agent+":x"), agent, "read line; echo $line; echo printed >&2; exit 3", nil)
	}
	for user, agent := range map[string]string{"u": "a", "v": "b"} {
		l := New(connectAs(t, server, user+":x"), user, "lab")
		l.Say = (&log{}).say
		if present, err := l.Agents(t.Context()); err != nil || len(present) != 2 {
			t.Errorf("%v %v", present, err)
		}
		printed := &log{}
		leased := lease(t, l, agent, printed)
		var held *heldError
		if _, err := l.Lease(t.Context(), agent, nil); !errors.As(err, &held) {
			t.Error(err)
		}
		if _, err := fmt.Fprintln(leased, "words"); err != nil {
			t.Fatal(err)
		}
		if said, err := io.ReadAll(leased); string(said) != "words\n" || err != nil {
			t.Errorf("%q %v", said, err)
		}
		if <-leased.Ended(); leased.How() != "exit status 3" {
			t.Errorf("%q", leased.How())
		}
		printed.await(t, "printed")
		if _, err := l.Lease(t.Context(), "c", nil); err == nil ||
			!strings.Contains(err.Error(), `no agent "c" waits on`) {
			t.Error(err)
		}
	}
	// A missing permission is reported, and the holder of a name is not asked forever.
	other := Serve(t.Context(), connectAs(t, server, "a:x"), Config{Name: "c", Log: (&log{}).say})
	if other == nil || !strings.Contains(strings.ToLower(other.Error()), "permissions violation") {
		t.Error(other)
	}
	again := Serve(t.Context(), connectAs(t, server, "a:x"), Config{Name: "a", Log: (&log{}).say})
	if again == nil || !strings.Contains(again.Error(), `there is an agent "a"`) {
		t.Error(again)
	}
	if _, err := New(connectAs(t, server, "u:x"), "v", "lab").Agents(t.Context()); err == nil ||
		!strings.Contains(strings.ToLower(err.Error()), "permissions violation") {
		t.Error(err)
	}
}

// TestOtherUsers: with those permissions another controller cannot receive anything of a run, not even the subjects of
// its agents. It cannot send anything into it, and no agent sends to it. The same is true for another agent.
func TestOtherUsers(t *testing.T) {
	server := permitted(t)
	serveOn(t, connectAs(t, server, "a:x"), "a", "cat", nil)
	serveOn(t, connectAs(t, server, "b:x"), "b", "cat", nil)
	u, v, b := server.Client("u:x"), server.Client("v:x"), server.Client("b:x")
	for _, subject := range []string{
		">", "rdmarun.>", "rdmarun.lab.>", "rdmarun.lab.to.>", "rdmarun.lab.to.u.>", "rdmarun.lab.to.*.*.a.>",
		"rdmarun.lab.agent.>", "rdmarun.lab.agent.a.>", "rdmarun.lab.agent.*.v.>", "rdmarun.lab.all.>", "_INBOX.>",
	} {
		if v.Subscribe(subject) == nil {
			t.Errorf("v may hear %s", subject)
		}
	}
	for _, subject := range []string{
		">", "rdmarun.lab.to.>", "rdmarun.lab.to.*.*.b.>", "rdmarun.lab.agent.>", "rdmarun.lab.agent.a.>", "_INBOX.>",
	} {
		if b.Subscribe(subject) == nil {
			t.Errorf("b may hear %s", subject)
		}
	}
	for _, each := range []struct {
		client  *bustest.Client
		subject string
	}{{v, "rdmarun.lab.to.v.>"}, {b, "rdmarun.lab.agent.b.>"}, {b, "rdmarun.lab.all.>"}, {u, "rdmarun.lab.to.u.>"}} {
		if err := each.client.Subscribe(each.subject); err != nil {
			t.Fatal(err)
		}
	}
	l := New(connectAs(t, server, "u:x"), "u", "lab")
	leased := lease(t, l, "a", &log{})
	exchange := func() {
		t.Helper()
		if _, err := fmt.Fprint(leased, "secret"); err != nil {
			t.Fatal(err)
		}
		if said, err := io.ReadAll(io.LimitReader(leased, 6)); string(said) != "secret" || err != nil {
			t.Fatalf("%q %v", said, err)
		}
	}
	exchange()
	// u itself has heard what a says, so all that others could use is known here.
	var stream string
	for _, said := range u.Received() {
		if words := strings.Split(said, "."); len(words) > 6 && words[5] == "a" && words[6] != "answer" {
			stream = words[6]
		}
	}
	if stream == "" {
		t.Fatalf("%q", u.Received())
	}
	question := newID()
	stranger := caller{"v", newID()}
	for _, said := range []struct {
		client  *bustest.Client
		subject string
	}{
		{v, l.self.toAgent("a") + "." + stream + ".part.2"}, {v, l.self.toAgent("a") + "." + stream + ".gone"},
		{v, l.self.ask("a", question)}, {v, l.self.toAll(question)},
		{v, l.self.from("a") + "." + stream + ".part.2"}, {v, l.self.from("a") + "." + stream + ".gone"},
		{v, l.self.answer("a", question)}, {v, stranger.answer("a", question)},
		{v, caller{itself, newID()}.ask("a", question)},
		{b, l.self.from("a") + "." + stream + ".part.2"}, {b, l.self.from("a") + "." + stream + ".gone"},
		{b, l.self.answer("a", question)}, {b, l.self.toAgent("a") + "." + stream + ".gone"},
		{b, l.self.ask("a", question)}, {b, l.self.toAll(question)}, {b, caller{itself, newID()}.ask("a", question)},
	} {
		if said.client.Say(said.subject, "", []byte("injected")) == nil {
			t.Errorf("it may say %s", said.subject)
		}
	}
	// Where an answer goes is not for the one who asks to say.
	before := len(u.Received())
	for _, reply := range []string{
		l.self.from("a") + "." + stream + ".gone", l.self.from("b") + ".x", l.self.answer("a", question),
	} {
		for _, subject := range []string{
			stranger.toAll(newID()), stranger.ask("a", newID()), stranger.ask("b", newID()),
		} {
			if err := v.Say(subject, reply, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	for end := time.Now().Add(waitLimit); len(v.Received()) < 12; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("v receives %q", v.Received())
		}
	}
	exchange()
	for _, said := range u.Received()[before:] {
		if !strings.HasPrefix(said, l.self.from("a")+"."+stream+".") || strings.Contains(said, ".gone") {
			t.Errorf("u receives %q", said)
		}
	}
	for _, client := range []*bustest.Client{v, b} {
		for _, said := range client.Received() {
			if strings.Contains(said, "secret") || strings.Contains(said, stream) ||
				client == v && strings.Contains(said, l.self.run) {
				t.Errorf("another receives %q", said)
			}
		}
	}
	if leased.Err() != nil {
		t.Error(leased.Err())
	}
}

// TestUserToken: a user is one word of a subject, and never an agent that asks for itself.
func TestUserToken(t *testing.T) {
	for user, want := range map[string]string{
		"u": "u", "a.b": "a/b", "LAB\\me": "LAB-me", "a@b c": "a-b-c", "": "-", "_": "-", "*": "-", ">": "-", "ü": "-",
		"_a": "_a",
	} {
		if got := userToken(user); got != want {
			t.Errorf("%q: %q, not %q", user, got, want)
		}
	}
	if got := userToken(strings.Repeat("x", 1000)); len(got) != maxWord {
		t.Errorf("%d bytes", len(got))
	}
}

// TestAgentAnswers: what an agent answers to a request is not trusted. TestNamesAtOnce: two agents that have found no
// other one of their name answer both. One ends, in any order of their claims. An agent that only asks ends none.
func TestNamesAtOnce(t *testing.T) {
	server := bustest.Start(t, bustest.Config{})
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			var agents []*agent
			for range 2 {
				a := newAgent(t.Context(), connect(t, server), Config{Name: fmt.Sprint("a", i), Log: func(string) {}})
				defer a.cancel(nil)
				if err := a.listen(); err != nil {
					t.Fatal(err)
				}
				agents = append(agents, a)
			}
			stays, ends := agents[0], agents[1]
			if ends.own.run < stays.own.run {
				stays, ends = ends, stays
			}
			claiming := []*agent{stays, ends}
			if i%2 == 1 {
				slices.Reverse(claiming)
			}
			if i > 1 {
				claiming = claiming[:1] // the other one's is on its way
			}
			for _, a := range claiming {
				if err := a.claim(); err != nil {
					t.Fatal(err)
				}
			}
			<-ends.ctx.Done()
			if !errors.Is(context.Cause(ends.ctx), errTaken) || stays.ctx.Err() != nil {
				t.Errorf("%v, and %v", context.Cause(ends.ctx), context.Cause(stays.ctx))
			}
			newer := newAgent(t.Context(), connect(t, server), Config{Name: fmt.Sprint("a", i)})
			defer newer.cancel(nil)
			newer.own.run = strings.Repeat("2", len(newer.own.run)) // smaller than any other
			if err := newer.ask(newID(), nil, 1); err != nil || stays.ctx.Err() != nil {
				t.Errorf("%v, and %v", err, stays.ctx.Err())
			}
		})
	}
}

func TestAgentAnswers(t *testing.T) {
	server := bustest.Start(t, bustest.Config{})
	l, _ := controller(t, server, 0)
	for name, test := range map[string]struct{ said, want string }{
		"nothing":       {"", "its answer cannot be read"},
		"an escape":     {`{"error":"\u001b[2J"}`, "␛[2J"},
		"too much":      {`{"error":"` + strings.Repeat("x", longest) + `"}`, "bytes"},
		"a long holder": {`{"holder":"` + strings.Repeat("x", 5000) + `"}`, strings.Repeat("x", lab.MaxText) + "..."},
	} {
		t.Run(name, func(t *testing.T) {
			agent := strings.ReplaceAll(name, " ", "-")
			err := connect(t, server).Answer(caller{"*", "*"}.ask(agent, "*"),
				func(subject string, _ []byte) (string, []byte) {
					who, id, _ := asked(subject)
					return who.answer(agent, id), []byte(test.said)
				})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := l.Lease(t.Context(), agent, nil); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, not %q", err, test.want)
			}
		})
	}
	// A controller gets an error for a request without a meaning.
	for _, asked := range []string{
		"", "{}", `{"protocol":2,"holder":"x","stream":"a.>"}`,
		`{"protocol":99,"holder":"x","stream":"ABCDEFGHIJKLMNOPQRSTUVWXYZ"}`,
	} {
		if _, err := parseRequest([]byte(asked)); err == nil {
			t.Errorf("%q is taken", asked)
		}
	}
}

// FuzzAgents makes an agent report anything about itself, and send any answers. What is accepted can be shown, and
// names nothing outside of its place.
func FuzzAgents(f *testing.F) {
	presence, _ := json.Marshal(Presence{
		Name: "a.b-c", Version: "v1", Labels: map[string]string{"rack": "r1"}, Holder: "x", Since: time.Unix(0, 0),
	})
	granted, _ := json.Marshal(grant{Holder: "x", Since: time.Unix(0, 0)})
	for _, seed := range []string{
		string(presence), string(granted), `{"name":"\u001b"}`, `{"name":"a","labels":{"\n":"x"}}`,
		`{"holder":"\u001b[2J","since":"9999-12-31T23:59:59Z"}`,
		`{"error":"\u0000"}`, `{"stream":"x.>"}`, `{"error":"::error::x","address":"$(x)"}`,
		`{"version":"` + strings.Repeat(`\u0001`, 2000) + `"}`, `[]`, ``, `{"error":"\ud800"}`,
		`{"device":"\u001b","findings":[{"title":"\u001b","status":"\u0007"}]}`,
		lab.NewAnswer("v1").String(), "rdmarun-agent 999999999999999999999 x y",
	} {
		f.Add([]byte(seed))
	}
	shown := func(t *testing.T, texts ...string) {
		for _, text := range texts {
			if len(text) > lab.MaxText+6 || lab.Text(text) != text && len(text) <= lab.MaxText ||
				strings.ContainsAny(text, "\x1b\x07\x00\n") || strings.HasPrefix(text, "::error") {
				t.Errorf("%q cannot be shown", text)
			}
		}
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		if p, err := parsePresence(said); err == nil {
			if strings.ContainsAny(p.Name, "*>/ ") || len(p.Labels) > maxLabels {
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
			shown(t, g.Error, g.Holder, (&heldError{Holder: g.Holder, Since: g.Since}).Error())
		}
		if r, err := parseRequest(said); err == nil {
			if shown(t, r.Holder); strings.ContainsAny(r.Stream, ".*> ") {
				t.Errorf("%q", r.Stream)
			}
		}
		if done, err := lab.ParseDone(said); err == nil {
			shown(t, done.Error, done.Hint)
		}
		if found, err := lab.ParseExamined(said); err == nil {
			shown(t, found.Error, found.Device, found.GIDType, found.Version)
			if _, err := netip.ParseAddr(found.Address); found.Address != "" && err != nil {
				t.Errorf("%q is not an address", found.Address)
			}
			for _, each := range found.Findings {
				shown(t, each.Title, each.Detail, each.Fix, each.ID, string(each.Status))
			}
		}
		if answer, ok := lab.ParseAnswer(string(said)); ok &&
			slices.Contains([]string{answer.Version, answer.Platform}, "") {
			t.Errorf("%+v", answer)
		}
	})
}
