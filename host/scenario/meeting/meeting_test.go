package meeting

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"rdmarun/host/bus"
	"rdmarun/host/printable"
	"rdmarun/internal/address"
)

func TestValues(t *testing.T) {
	want := map[string]any{
		"nothing": nil, "yes": true, "text": "a \"b\" \x00 é", "int": -7, "large": math.MaxInt,
		"unsigned": uint64(math.MaxUint64),
		"float":    0.1, "time": 655360 * time.Microsecond, "bytes": []byte{0, 255}, "list": []any{1, "b", []any{}},
		"record": map[string]any{"int": map[string]any{"x": 1}},
	}
	raw, err := Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(raw)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s\n%#v\n%v", raw, got, err)
	}
	if raw, err = Encode([]byte(nil)); err != nil {
		t.Fatal(err)
	}
	if got, err := Decode(raw); err != nil || !reflect.DeepEqual(got, []byte{}) {
		t.Errorf("no bytes are %#v, %v", got, err)
	}
	if _, err := Encode(map[string]any{"f": func() {}}); err == nil {
		t.Error("a function was called")
	}
}

func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		`{"int":"1"}`, `{"int":1}`, `{"record":{"a":[null,{"time":"5"}]}}`, `{}`, `{"a":"b","c":"d"}`, `{"bytes":"_"}`,
		`7`, `{"int":"99999999999999999999"}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		value, err := Decode(json.RawMessage(text))
		if err != nil {
			return
		}
		if _, err := Encode(value); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	})
}

// joined is what one process has of a meeting.
type joined struct {
	m   *Meeting
	err error
}

// meet lets processes meet, the first of which listens.
func meet(t *testing.T, configs ...Config) []joined {
	t.Helper()
	at := address.Free(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	found := make([]joined, len(configs))
	done := make(chan int)
	for i, config := range configs {
		if i == 0 {
			config.Listen = at
		} else {
			config.Peers = []string{at}
		}
		go func() {
			found[i].m, found[i].err = Join(ctx, config)
			if found[i].err != nil {
				cancel() // the others need not wait
			}
			done <- i
		}()
	}
	for range configs {
		<-done
	}
	t.Cleanup(func() {
		for _, each := range found {
			if each.m != nil {
				each.m.Close()
			}
		}
	})
	return found
}

// plays is a process with some of three roles.
func plays(roles ...string) Config {
	return Config{Roles: roles, All: []string{"server", "a", "b"}, Plan: []string{"x"}}
}

// join makes processes that have joined one meeting; the first listens.
func join(t *testing.T, configs ...Config) (all []*Meeting) {
	t.Helper()
	for i, each := range meet(t, configs...) {
		if each.err != nil {
			t.Fatalf("%d: %v", i, each.err)
		}
		all = append(all, each.m)
	}
	return all
}

// broadcast sends a message to all others.
func broadcast(t *testing.T, m *Meeting, key string, value any) {
	t.Helper()
	if err := m.Broadcast(key, value); err != nil {
		t.Fatal(err)
	}
}

// wantMessage waits for a message of another process.
func wantMessage(t *testing.T, m *Meeting, from, key string) {
	t.Helper()
	if _, _, err := m.Await(t.Context(), from, key); err != nil {
		t.Fatalf("%s: %v", m.name, err)
	}
}

// wantExpelled waits until the host has ended the connection of a process: what it says later arrives nowhere.
func wantExpelled(t *testing.T, m *Meeting) {
	t.Helper()
	select {
	case <-m.conn.Closed():
	case <-time.After(time.Minute):
		t.Fatalf("the connection of %s lasts", m.name)
	}
}

func TestMeeting(t *testing.T) {
	found := join(t, plays("server"), plays("a"), plays("b"))
	for i, each := range found {
		if len(each.Others()) != 2 {
			t.Fatalf("%d: %v", i, each.Others())
		}
		broadcast(t, each, fmt.Sprintf("from %d", i), i)
	}
	for i, each := range found {
		for j, other := range found {
			if i == j {
				continue
			}
			key, value, err := each.Await(t.Context(), other.name, "never", fmt.Sprintf("from %d", j))
			if err != nil || key != fmt.Sprintf("from %d", j) || string(value) != fmt.Sprint(j) {
				t.Errorf("%d receives from %d: %q %s %v", i, j, key, value, err)
			}
		}
	}
	// A message from before a loss arrives, and none after it.
	broadcast(t, found[1], "last", true)
	found[1].conn.Close() // as the end of its process does
	for _, i := range []int{0, 2} {
		wantMessage(t, found[i], "a", "last")
		_, _, err := found[i].Await(t.Context(), "a", "more")
		if gone := (*GoneError)(nil); !errors.As(err, &gone) || gone.Who != "a" {
			t.Errorf("%d: %v", i, err)
		}
	}
	broadcast(t, found[2], "still", 1)
	wantMessage(t, found[0], "b", "still")
	found[0].Forget("from")
	if n := stored(found[0]); n != 0 {
		t.Errorf("%d messages are left", n)
	}
}

func TestRefused(t *testing.T) {
	both := []string{"server", "client"}
	first := Config{Roles: []string{"server"}, All: both, Plan: []string{"a.yaml::one", "a.yaml::two"}}
	for name, test := range map[string]struct {
		second Config
		want   string
	}{
		"another plan": {
			Config{Roles: []string{"client"}, All: both, Plan: []string{"a.yaml::one", "a.yaml::three"}},
			"it would run a.yaml::three where this one runs a.yaml::two",
		},
		"a longer plan": {
			Config{Roles: []string{"client"}, All: both, Plan: append(first.Plan, "more")},
			"it would run more where this one runs nothing",
		},
		"a role twice": {
			Config{Roles: []string{"server"}, All: both, Plan: first.Plan},
			"role server is played by another process already",
		},
		"another role": {
			Config{Roles: []string{"third"}, All: both, Plan: first.Plan}, `there is no role "third" here`,
		},
		"no role": {Config{All: both, Plan: first.Plan}, "it has no role"},
	} {
		t.Run(name, func(t *testing.T) {
			found := meet(t, first, test.second)
			if err := found[1].err; err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
			if err := found[0].err; err == nil || !strings.Contains(err.Error(), "timed out at") {
				t.Errorf("who listens: %v", err)
			}
		})
	}
}

// many are more settings than count, all with long names and values of that text.
func many(text string) (settings []Setting) {
	settings = append(settings, Setting{"tests", "write_bw"})
	for i := range 4 * maxSettings {
		settings = append(settings, Setting{fmt.Sprintf("%d%s", i, text), text})
	}
	return settings
}

// TestSettings: two processes that would run something else are refused at once, and both users see the flags that
// differ.
func TestSettings(t *testing.T) {
	both, set := []string{"server", "client"}, func(pairs ...string) (settings []Setting) {
		for i := 0; i < len(pairs); i += 2 {
			settings = append(settings, Setting{pairs[i], pairs[i+1]})
		}
		return settings
	}
	const plans = "it would run b where this one runs a"
	long := strings.Repeat("x", 3*maxSettingShow)
	for name, test := range map[string]struct {
		host, visitor []Setting
		plan          string
		there, here   string // what the visitor and the host hear; here "" is the same, as the host sees it
	}{
		"a value": {
			set("tests", "write_bw", "-s", "8KiB", "-t", "128"), set("tests", "write_bw", "-s", "4KiB", "-t", "128"),
			"b",
			"server refused this one: -s: 4KiB here, 8KiB at 127.0.0.1: pass the same on both ends",
			"-s: 8KiB here, 4KiB there: pass",
		},
		"given on one end": {
			set("tests", "x", "-n", "100"), set("tests", "x", "-D", "1s"), "b",
			": -D: 1s here, not given at 127.0.0.1; -n: not given here, 100 at 127.0.0.1: pass",
			": -n: 100 here, not given there; -D: not given here, 1s there: pass",
		},
		"the first decides": {
			set("tests", "x", "-q", "1"), set("tests", "y", "-q", "2"), "b", ": tests: y here, x at 127.0.0.1: pass",
			": tests: x here, y there: pass",
		},
		"too many": {
			set("tests", "x"), append(set("tests", "x"), many(long)[1:]...), "b", `not given at 127.0.0.1: pass`, `0xx`,
		},
		"a terminal's orders": {
			set("tests", "x"), set("tests", "\x1b[2J"), "b", ": tests: ␛[2J here, x at", ": tests: x here, ␛[2J there",
		},
		"the same settings": {set("tests", "x"), set("tests", "x"), "b", plans, plans},
		"none there":        {set("tests", "x"), nil, "b", plans, plans},
		"none here":         {nil, set("tests", "x"), "b", plans, plans},
		"the same plan":     {set("tests", "x"), set("tests", "y"), "a", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			reported := make(chan string, maxRefusals+1)
			found := meet(t,
				Config{
					Roles: both[:1], All: both, Plan: []string{"a"}, Settings: test.host,
					Refused: func(what string) { reported <- what },
				},
				Config{Roles: both[1:], All: both, Plan: []string{test.plan}, Settings: test.visitor})
			if test.there == "" {
				if found[0].err != nil || found[1].err != nil {
					t.Error(found[0].err, found[1].err)
				}
				return
			}
			if err := found[1].err; err == nil || !strings.Contains(err.Error(), test.there) ||
				len(err.Error()) > 4*maxShown {
				t.Errorf("the visitor: %v", err)
			}
			if err := found[0].err; err == nil || !strings.Contains(err.Error(), test.here) ||
				len(err.Error()) > 4*maxShown {
				t.Errorf("the host: %v", err)
			}
			if len(reported) != 1 || !strings.Contains(<-reported, test.here) {
				t.Error("the host's user is not notified once")
			}
		})
	}
}

func TestNobodyIsThere(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
	defer cancel()
	at := address.Free(t)
	_, err := Join(ctx, Config{Roles: []string{"client"}, All: []string{"server", "client"}, Peers: []string{at}})
	if err == nil || !strings.Contains(err.Error(), "no process listens at "+at) {
		t.Errorf("%v", err)
	}
}

// TestStrangers: what is no process of the run neither takes part nor disturbs, before and while others do.
func TestStrangers(t *testing.T) {
	at := address.Free(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	host := make(chan joined)
	go func() {
		m, err := Join(ctx, Config{Roles: []string{"server"}, All: []string{"server", "client"}, Listen: at})
		host <- joined{m, err}
	}()
	for _, text := range []string{
		"GET / HTTP/1.0\r\n\r\n", "{}", `{"key":"hello"}` + "\n", `{"key":"hello","value":7}` + "\n",
		"[" + strings.Repeat("[", 100_000), `{"key":"welcome","value":{}}` + "\n",
		`{"key":"hello","value":"` + strings.Repeat("x", longest) + `"}`,
	} {
		conn, err := find(ctx, Config{Peers: []string{at}})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte(text)) // it may have been closed
		_ = conn.Close()
	}
	client, err := Join(ctx, Config{Roles: []string{"client"}, All: []string{"server", "client"}, Peers: []string{at}})
	server := <-host
	if err != nil || server.err != nil {
		t.Fatal(err, server.err)
	}
	defer client.Close()
	defer server.m.Close()
	// A process cannot send in the name of another: not under its subject, and its messages have its own name.
	for _, subject := range []string{
		bus.To(bus.AllMembers, subjectMessage), bus.From(server.m.conn.Name(), subjectMessage),
	} {
		if err := client.publish(message{From: "server", Key: "x"}, subject); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.publish(
		message{From: "server", Key: "y", Value: []byte("1")}, bus.From(client.conn.Name(), subjectMessage),
	); err != nil {
		t.Fatal(err)
	}
	if key, _, err := server.m.Await(ctx, "client", "x", "y"); err != nil || key != "y" {
		t.Errorf("%q %v", key, err)
	}
	if err := client.conn.Publish(bus.From(client.conn.Name(), subjectMessage), []byte("{")); err != nil {
		t.Fatal(err)
	}
	if _, _, err = server.m.Await(ctx, "client", "x"); err == nil ||
		!strings.Contains(err.Error(), "sent a message that cannot be read") {
		t.Errorf("%v", err)
	}
	wantExpelled(t, client)
	if _, _, err = client.Await(ctx, "server", "x"); err == nil {
		t.Error("an expelled process gets no message")
	}
}

// TestSilence: a process that is silent counts as lost, and its connection ends.
func TestSilence(t *testing.T) {
	for i, test := range []struct{ other, want string }{
		{"a+b", "the process of a+b says nothing for 1s"}, {"server", "the process of server says nothing for 1s"},
	} {
		configs := []Config{plays("server"), plays("a", "b")}
		configs[i].Silence = time.Second
		found := join(t, configs...) // the other process sends no beats
		_, _, err := found[i].Await(t.Context(), test.other, "never")
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v", err)
		}
		wantExpelled(t, found[1])
	}
}

// TestManyLost: the host asks for the reasons of several losses at once, for any kind of loss, and takes messages
// meanwhile.
func TestManyLost(t *testing.T) {
	asked, answer := make(chan string, 2), make(chan bool)
	host := plays("server")
	host.Why = func(process, why string) string {
		asked <- process
		<-answer
		return why + ", as asked"
	}
	found := join(t, host, plays("a"), plays("b"))
	if err := found[2].conn.Publish(bus.From(found[2].conn.Name(), subjectMessage), []byte("{")); err != nil {
		t.Fatal(err)
	}
	first := <-asked
	found[1].conn.Abandon()
	if second := <-asked; first != "b" || second != "a" {
		t.Errorf("asked of %s and %s", first, second)
	}
	close(answer)
	for _, other := range []string{"a", "b"} {
		if _, _, err := found[0].Await(t.Context(), other, "never"); err == nil ||
			!strings.Contains(err.Error(), "as asked") {
			t.Errorf("%s: %v", other, err)
		}
	}
}

// FuzzMessage takes any data under each subject: it counts for its sender, and no other process is lost.
func FuzzMessage(f *testing.F) {
	words := []string{
		subjectHello, subjectMessage, subjectBeat, subjectReport, subjectBye, subjectLeft, subjectGone, subjectSync, "",
		"x.message",
	}
	for i := range words {
		for _, text := range []string{
			"", "{}", "[]", "null", `{"from":"b","to":"a","key":"1/end/b","value":{"status":"passed"}}`,
			`{"from":"host","to":"\u001b","key":"gone"}`, `{"key":7}`, "{", `{"to":"b","key":"x"}`,
		} {
			f.Add(uint8(i), []byte(text))
		}
	}
	server, err := bus.NewServer()
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(server.Close)
	conn, err := server.Connect()
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(conn.Close)
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		word, reports := words[int(which)%len(words)], 0
		m := newMeeting("host")
		m.conn, m.server, m.members = conn, server, map[string]string{"a1": "a", "b1": "b"}
		m.queueReports(func(from string, _ []byte) {
			if reports++; from != "a" {
				t.Errorf("%s reports", from)
			}
		})
		m.serve(&bus.Message{Subject: bus.From("a1", word), Data: data})
		m.serve(&bus.Message{Subject: bus.From("stranger", word), Data: data})
		m.leaving.Wait()
		m.reports.Close()
		if m.gone["b"] != nil || m.gone["host"] != nil || m.members["b1"] != "b" || reports > 1 || len(m.lastSeen) > 1 {
			t.Errorf("%+v", m)
		}
		for _, box := range m.boxes {
			for key := range box {
				if key.From != "a" {
					t.Errorf("%+v", key)
				}
			}
		}
		visitor := newMeeting("b")
		visitor.receive(&bus.Message{Subject: bus.To(bus.AllMembers, word), Data: data})
		if stored(visitor)+len(visitor.gone) > 1 || visitor.HasCome("b", nil) {
			t.Errorf("%+v", visitor)
		}
	})
}

// TestPlaced: a member of a run has the roles that the placement gives it, and all processes know the players.
func TestPlaced(t *testing.T) {
	for name, test := range map[string]struct {
		came []string
		want string
	}{
		"its own":       {[]string{"a"}, ""},
		"of another":    {[]string{"b"}, "role b is that of two"},
		"also of other": {[]string{"a", "b"}, "role b is that of two"},
	} {
		t.Run(name, func(t *testing.T) {
			server, err := bus.NewServer()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(server.Close)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			ctx, stop := context.WithCancel(ctx)
			defer stop()
			ids := make(map[string]string)
			conns := make(map[string]*bus.Conn)
			for _, member := range []string{"one", "two"} {
				who := bus.NewCredentials()
				here, there := net.Pipe()
				go func() { _ = server.Serve(ctx, who, here) }()
				conn, err := bus.Over(who, there)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(conn.Close)
				ids[who.Name], conns[member] = member, conn
			}
			found := make(chan error, 2)
			join := func(member string, roles ...string) {
				m, err := Join(ctx, Config{
					Name: member, Roles: roles, All: []string{"a", "b"}, Plan: []string{"x"}, Bus: conns[member],
				})
				if err == nil {
					if m.Player("a") != "one" || m.Player("b") != "two" || m.Player("x") != "" {
						t.Errorf("%s: %v", member, m.players)
					}
					t.Cleanup(m.Close)
				} else if member == "one" {
					stop() // the other waits no more
				}
				found <- err
			}
			go join("one", test.came...)
			go join("two", "b")
			m, err := Join(ctx, Config{
				Name: "host", All: []string{"a", "b"}, Plan: []string{"x"}, Server: server, Members: ids,
				Players: map[string]string{"a": "one", "b": "two"},
			})
			if err == nil {
				t.Cleanup(m.Close)
			}
			first, second := <-found, <-found
			switch {
			case test.want == "" && (err != nil || first != nil || second != nil):
				t.Error(err, first, second)
			case test.want != "" && (err == nil || !strings.Contains(fmt.Sprint(first, second), test.want)):
				t.Error(err, first, second)
			}
		})
	}
}

// FuzzHello takes any hello and any answer: a process takes part under its own name, with roles of its own. A
// rejection is one printable line.
func FuzzHello(f *testing.F) {
	config := Config{
		All: []string{"server", "a", "b"}, Plan: []string{"one", "two"},
		Settings: []Setting{{"tests", "write_bw"}, {"-s", "8KiB"}},
	}
	for _, each := range []hello{
		{version, []string{"a"}, config.Plan, nil}, {version, []string{"a", "b"}, config.Plan, nil},
		{version, []string{"a", "a"}, config.Plan, nil}, {version, []string{"server"}, config.Plan, nil},
		{version, nil, nil, nil}, {version - 1, []string{"a"}, config.Plan, nil},
		{version, []string{"a", "x"}, config.Plan, nil},
		{version, []string{"b"}, []string{"one", "\x1b[2J" + strings.Repeat("x", 4000)}, nil},
		{version, []string{"b"}, nil, many("\x1b[2J" + strings.Repeat("x", 4000))},
		{version, []string{"b"}, nil, []Setting{{"\n", "\u202e"}, {"-s", "4KiB"}}},
	} {
		raw, err := json.Marshal(each)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	for _, seed := range []string{
		`{"host":"server","processes":["server","a"],"fabric":"run-0123456789abcdef"}`,
		`{"host":"\u001b","refused":"\u202e\n` + strings.Repeat("x", 4000) + `"}`, `{"fabric":"run-"}`,
		`{"players":{"server":"s","a":"a","b":"b","x":"y"}}`, `{"players":{"server":"s","a":"b","b":"b"}}`,
		`{"players":{"server":"a","a":"a"}}`,
		`{"settings":[{"name":"tests","value":"write_bw"},{"name":"\u001b","value":"` +
			strings.Repeat("\\u2028", 4000) + `"}]}`,
		`{"version":1e99}`, `{"roles":{}}`, `null`, `[]`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		clean := func(text string) {
			if len(text) > 4*maxShown || printable.Line(text) != text {
				t.Errorf("%d bytes: %.200q", len(text), text)
			}
		}
		if all, err := parseWelcome(data); err == nil {
			clean(all.Host)
			clean(all.Refused)
			if differs := differ(config.Settings, all.Settings, "at 192.0.2.1"); differs != nil {
				clean(differs.Error())
			}
			m := &Meeting{name: "a", players: map[string]string{"a": "a"}}
			if err := m.cast(all.Players, config.All); err != nil {
				clean(err.Error())
			} else if m.Player("a") != "a" || m.Player("server") == "" || m.Player("b") == "a" || len(m.players) != 3 {
				t.Errorf("%v play", m.players)
			}
		}
		var who arrival
		if json.Unmarshal(data, &who.hello) != nil {
			return
		}
		if why := who.unfit(config, []string{"server"}, false); why != "" {
			clean(why)
		} else if name := nameOf(who.Roles); name != "a" && name != "b" && name != "a+b" || who.Version != version ||
			!slices.Equal(who.Plan, config.Plan) {
			t.Errorf("%+v", who.hello)
		}
		if who.unfit(config, nil, true) == "" {
			t.Error("who has come before comes again")
		}
	})
}
