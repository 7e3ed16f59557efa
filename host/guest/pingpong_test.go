package guest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"rdmarun/host/guest"
	"rdmarun/rdmacore"
)

const pingpong = "rdmarun/guests/pingpong"

// startServer starts a pingpong server and returns when it listens.
func startServer(t testing.TB, r *guest.Runtime, p *rdmacore.Provider, out *output, args ...string) *guest.Guest {
	t.Helper()
	listening := make(chan struct{})
	server, err := r.Start(testContext(t), compileGo(t, r, pingpong), guest.Config{
		Name: "server", Provider: p, Args: append([]string{"--server"}, args...), Stdout: out, Stderr: out,
		Barrier: func(context.Context, string) error { close(listening); return nil },
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
	result := r.Run(testContext(t), compileGo(t, r, faulty), guest.Config{Provider: p, Args: []string{"sleep"}, Stdout: &slept, Stderr: &slept})
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
