package guest_test

import (
	"context"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"rdmarun/host/guest"
	"rdmarun/rdmacore"
)

// peer is the side of a connection that is no guest.
type peer struct {
	channel  *rdmacore.EventChannel
	listener *rdmacore.ID
	child    *rdmacore.ID
}

func listen(t testing.TB, p *rdmacore.Provider) *peer {
	t.Helper()
	channel, err := p.CreateEventChannel()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := channel.CreateEP(testContext(t), rdmacore.EPConfig{
		Passive: true, Source: netip.AddrPortFrom(netip.IPv4Unspecified(), 0),
		QP: &rdmacore.QPInitAttr{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1},
	})
	if err == nil {
		err = listener.Listen(4)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &peer{channel: channel, listener: listener}
}

func (p *peer) expect(ctx context.Context, t testing.TB, id *rdmacore.ID, want rdmacore.EventType) *rdmacore.Event {
	t.Helper()
	event, err := p.channel.Wait(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if event.Type != want || event.Status != 0 {
		t.Fatalf("%s with status %d, not %s", event.Type, event.Status, want)
	}
	return event
}

// accept takes a guest's request.
func (p *peer) accept(ctx context.Context, t testing.TB) {
	t.Helper()
	p.child = p.expect(ctx, t, p.listener, rdmacore.EventConnectRequest).ID
	if err := p.child.Accept(nil); err != nil {
		t.Fatal(err)
	}
	p.expect(ctx, t, p.child, rdmacore.EventEstablished)
}

func (p *peer) close(t testing.TB) {
	t.Helper()
	for _, err := range []error{p.child.DestroyEP(), p.listener.DestroyEP(), p.channel.Close()} {
		if err != nil {
			t.Error(err)
		}
	}
}

// However a connected guest ends, its peer sees DISCONNECTED and nothing of the guest is left.
func TestGuestsThatEndWhileConnected(t *testing.T) {
	for name, c := range map[string]struct {
		limit   time.Duration
		outcome guest.Outcome
		code    int
	}{
		"leave": {0, guest.Exited, 0},
		"exit":  {0, guest.Exited, 3},
		"panic": {0, guest.Exited, 2},
		"spin":  {2 * time.Second, guest.TimedOut, 124},
		"wait":  {2 * time.Second, guest.TimedOut, 124},
	} {
		t.Run(name, func(t *testing.T) {
			r, p := newRuntime(t, guest.InterruptMetered), newProvider(t)
			ctx := testContext(t)
			peer := listen(t, p)
			defer peer.close(t)
			var out output
			guest, err := r.Start(ctx, compileGo(t, r, faulty), guest.Config{
				Provider: p, Stdout: &out, Limits: guest.Limits{Time: c.limit},
				Args: []string{"connected", strconv.Itoa(int(peer.listener.LocalAddr().Port())), name},
			})
			if err != nil {
				t.Fatal(err)
			}
			peer.accept(ctx, t)
			peer.expect(ctx, t, peer.child, rdmacore.EventDisconnected)
			result, err := guest.Wait(ctx)
			if err != nil || result.Outcome != c.outcome || result.ExitCode != c.code {
				t.Errorf("%v: %s %d %v\n%s", err, result.Outcome, result.ExitCode, result.Err, &out)
			}
			if want := "1 event channel, 1 ID, 1 PD, 1 MR, 2 CQ, 1 QP"; result.Freed.String() != want {
				t.Errorf("freed %s, not %s", result.Freed, want)
			}
		})
	}
}

func TestHello(t *testing.T) {
	r, p := newRuntime(t, guest.InterruptMetered), newProvider(t)
	m, err := r.Compile(testContext(t), "../../guests/hello/hello.wasm")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var out output
		result := r.Run(testContext(t), m, guest.Config{Provider: p, Stdout: &out, Stderr: &out})
		if !result.OK() || out.String() != "hello from one end of a queue pair to the other\n" {
			t.Errorf("%v\n%s", result.Err, &out)
		}
		if result.Freed.Total() != 0 {
			t.Errorf("it left %s behind", result.Freed)
		}
	}
}

const pingpong = "rdmarun/guests/pingpong"

// startServer starts a pingpong server and returns when it listens.
func startServer(t testing.TB, r *guest.Runtime, p *rdmacore.Provider, out *output, args ...string) *guest.Guest {
	t.Helper()
	listening := make(chan struct{})
	server, err := r.Start(testContext(t), compileGo(t, r, pingpong), guest.Config{
		Name: "server", Provider: p, Args: append([]string{"--server"}, args...), Stdout: out, Stderr: out,
		Barrier: func(string) <-chan struct{} { close(listening); return listening },
	})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-listening:
	case <-server.Done():
		t.Fatalf("the server ended: %v\n%s", server.Result().Err, out)
	}
	return server
}

// On a virtual clock guests wait, sleep and spin as well, and an hour takes no time.
func TestVirtualClock(t *testing.T) {
	r, p := newRuntime(t, guest.InterruptMetered), newProvider(t, rdmacore.WithVirtualClock())
	var slept output
	result := r.Run(testContext(t), compileGo(t, r, faulty), guest.Config{
		Provider: p, Args: []string{"sleep"}, Stdout: &slept, Stderr: &slept,
	})
	if !result.OK() || p.Clock().Now() < time.Hour {
		t.Errorf("an hour of sleep: %v, and it is %s\n%s", result.Err, p.Clock().Now(), &slept)
	}
	var serverOut, clientOut output
	server := startServer(t, r, p, &serverOut)
	result = r.Run(testContext(t), compileGo(t, r, pingpong), guest.Config{
		Name: "client", Provider: p, Args: []string{"--client=self", "--count=50", "--writes=50"},
		Stdout: &clientOut, Stderr: &clientOut,
	})
	if !result.OK() {
		t.Errorf("client: %v\n%s", result.Err, &clientOut)
	}
	if result, err := server.Wait(testContext(t)); err != nil || !result.OK() {
		t.Errorf("server: %v %v\n%s", err, result.Err, &serverOut)
	}
}

func TestPingpong(t *testing.T) {
	for name, args := range map[string][]string{
		"short":      {"--count=100", "--writes=100"},
		"one byte":   {"--count=20", "--writes=20", "--size=1"},
		"64 KiB":     {"--count=20", "--writes=20", "--size=65536"},
		"sends only": {"--count=20", "--writes=0"},
	} {
		t.Run(name, func(t *testing.T) {
			r, p := newRuntime(t, guest.InterruptMetered), newProvider(t)
			var serverOut, clientOut output
			server := startServer(t, r, p, &serverOut)
			result := r.Run(testContext(t), compileGo(t, r, pingpong), guest.Config{
				Name: "client", Provider: p, Args: append([]string{"--client=self"}, args...),
				Stdout: &clientOut, Stderr: &clientOut,
			})
			if !result.OK() {
				t.Errorf("client: %v\n%s", result.Err, &clientOut)
			}
			if result, err := server.Wait(testContext(t)); err != nil || !result.OK() {
				t.Errorf("server: %v %v\n%s", err, result.Err, &serverOut)
			}
			if !strings.Contains(clientOut.String(), "every byte verified") {
				t.Errorf("client printed\n%s", &clientOut)
			}
			t.Logf("\n%s", &clientOut)
		})
	}
}

// Synchronous endpoints, options, migration, held events, names and multicast, from a guest.
func TestSynchronousGuest(t *testing.T) {
	r, p := newRuntime(t, guest.InterruptMetered), newProvider(t)
	var printed output
	result := r.Run(testContext(t), compileGo(t, r, "rdmarun/guests/synchronous"),
		guest.Config{Provider: p, Stdout: &printed, Stderr: &printed})
	if !result.OK() || printed.String() != "connect\nrefused\nmulticast\n" {
		t.Errorf("%v\n%s", result.Err, &printed)
	}
}
