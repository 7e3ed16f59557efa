package meeting

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"rdmarun/host/bus"
	"rdmarun/internal/address"
)

// TestLastMessages: what a process has sent before it leaves arrives before its end does, from the host and from
// another.
func TestLastMessages(t *testing.T) {
	const count = 300
	for name, leaves := range map[string]int{"the host": 0, "another": 1} {
		t.Run(name, func(t *testing.T) {
			found := join(t, plays("server"), plays("a"), plays("b"))
			for i := range count {
				broadcast(t, found[leaves], fmt.Sprint("key ", i), i)
			}
			found[leaves].Close()
			for i, each := range found {
				if i == leaves {
					continue
				}
				for n := range count {
					wantMessage(t, each, found[leaves].name, fmt.Sprint("key ", n))
				}
				_, _, err := each.Await(t.Context(), found[leaves].name, "more")
				if gone := (*GoneError)(nil); !errors.As(err, &gone) || gone.Why != endedItsRun {
					t.Errorf("%s: %v", each.name, err)
				}
			}
			if leaves == 1 { // the others go on
				broadcast(t, found[2], "still", nil)
				wantMessage(t, found[0], "b", "still")
			}
			found[leaves].Close() // twice is once
		})
	}
}

// TestNotAllCome: the time to meet ends with the roles that are missing, at both ends, and the port is free again.
func TestNotAllCome(t *testing.T) {
	at := address.Free(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	host, visitor := plays("server"), plays("a")
	host.Listen, visitor.Peers = at, []string{at}
	errs := make([]error, 2)
	var joining sync.WaitGroup
	for i, config := range []Config{host, visitor} {
		joining.Go(func() {
			var m *Meeting
			if m, errs[i] = Join(ctx, config); m != nil {
				m.Close()
			}
		})
	}
	joining.Wait()
	if errs[0] == nil || !strings.Contains(errs[0].Error(), "timed out at "+at+" waiting for b") {
		t.Errorf("the host: %v", errs[0])
	}
	if errs[1] == nil || !strings.Contains(errs[1].Error(), at) {
		t.Errorf("the visitor: %v", errs[1])
	}
	listener, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, err = Join(t.Context(), host)
	if err == nil || !strings.Contains(err.Error(), at+" is taken, perhaps by another run") {
		t.Errorf("a port that is taken: %v", err)
	}
}

// TestHostileHost: a process takes part only if the host's answer has a fabric and a player for each role. The host's
// text is shown, bounded and printable.
func TestHostileHost(t *testing.T) {
	const fabric, players = `"fabric":"run-0123456789abcdef"`, `"players":{"server":"h","a":"a","b":"h"}`
	for name, test := range map[string]struct {
		answer, want string
	}{
		"all is well":      {`{"host":"h","processes":["h","a"],` + fabric + `,` + players + `}`, ""},
		"no JSON":          {`hello`, "is not an rdmarun process"},
		"nothing":          {``, "is not an rdmarun process"},
		"no fabric":        {`{"host":"h",` + players + `}`, "the process of h gives no fabric"},
		"another's fabric": {`{"host":"h","fabric":"../x"}`, "the process of h gives no fabric"},
		"no players":       {`{"host":"h",` + fabric + `}`, `the process of h: it says that role server is played`},
		"our role": {
			`{"host":"h",` + fabric + `,"players":{"server":"h","a":"h","b":"h"}}`, `role a is played by "h"`,
		},
		"a refusal":  {`{"host":"h","refused":"no\u001b[2J"}`, "the process of h refused this one: no␛[2J"},
		"a long one": {`{"host":"h","refused":"` + strings.Repeat("x", 9000) + `"}`, "refused this one: xxx"},
		"settings": {
			`{"host":"h","refused":"x","settings":[{"name":"-s","value":"8KiB"}]}`,
			"-s: 4KiB here, 8KiB at the controller",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, err := bus.NewServer()
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			host, err := server.Connect()
			if err != nil {
				t.Fatal(err)
			}
			defer host.Close()
			if _, err = host.Listen(func(msg *bus.Message) {
				var said hello
				if err := json.Unmarshal(msg.Data, &said); err != nil || said.Version != version {
					t.Errorf("%s: %v", msg.Data, err)
				}
				_ = msg.Respond([]byte(test.answer))
			}, bus.From("*", subjectHello)); err != nil {
				t.Fatal(err)
			}
			who := bus.NewCredentials()
			here, there := net.Pipe()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			go func() { _ = server.Serve(ctx, who, here) }()
			conn, err := bus.Over(who, there)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			config := plays("a")
			config.Bus, config.Settings = conn, []Setting{{"-s", "4KiB"}}
			m, err := Join(ctx, config)
			if (err == nil) != (test.want == "") ||
				err != nil && (!strings.Contains(err.Error(), test.want) || len(err.Error()) > 2*maxShown) {
				t.Fatal(err)
			}
			if m == nil {
				return
			}
			defer m.Close()
			if m.Fabric() != "run-0123456789abcdef" || m.Player("b") != "h" || len(m.Others()) != 1 ||
				m.Reached().IsValid() {
				t.Errorf("%q, %v, %v, %v", m.Fabric(), m.players, m.Others(), m.Reached())
			}
			host.Close()
			server.Close()
			if _, _, err := m.Await(ctx, "h", "never"); err == nil || ctx.Err() != nil {
				t.Errorf("the host has gone, and its message is waited for: %v", err)
			}
		})
	}
}

// TestFabrics: all processes of a meeting have one fabric, and no two meetings have the same.
func TestFabrics(t *testing.T) {
	names := make(map[string]bool)
	for range 3 {
		found := join(t, plays("server"), plays("a", "b"))
		if found[0].Fabric() != found[1].Fabric() || !fabricForm.MatchString(found[0].Fabric()) {
			t.Errorf("%q and %q", found[0].Fabric(), found[1].Fabric())
		}
		names[found[0].Fabric()] = true
		if !found[1].Reached().IsLoopback() || !found[0].Reached().IsLoopback() {
			t.Errorf("reached at %s and %s", found[0].Reached(), found[1].Reached())
		}
		if found[0].Player("b") != "a+b" || found[1].Player("server") != "server" {
			t.Errorf("%v, %v", found[0].players, found[1].players)
		}
	}
	if len(names) != 3 {
		t.Errorf("%v", names)
	}
}
