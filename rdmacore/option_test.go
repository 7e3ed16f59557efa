package rdmacore

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"runtime"
	"syscall"
	"testing"
	"time"
)

func newID(t testing.TB, channel *EventChannel, ps PortSpace) *ID {
	t.Helper()
	id, err := channel.CreateID(ps)
	must(t, err)
	destroyAtEnd(t, id)
	return id
}

// setTrue sets an option that has a C int as its value.
func setTrue(id *ID, option IDOption) error {
	return id.SetOption(OptionID, option, binary.NativeEndian.AppendUint32(nil, 1))
}

func TestSetOption(t *testing.T) {
	channel := newChannel(t, opened(t))
	lacking(t, newID(t, channel, PortSpaceTCP).SetOption(OptionID, OptionTOS, []byte{0}))
	for name, row := range map[string]struct {
		set  func(*ID) error
		want error
	}{
		"tos":           {func(id *ID) error { return id.SetOption(OptionID, OptionTOS, []byte{0x20}) }, nil},
		"reuse address": {func(id *ID) error { return setTrue(id, OptionReuseAddr) }, nil},
		"own family":    {func(id *ID) error { return setTrue(id, OptionAFOnly) }, nil},
		"ack timeout":   {func(id *ID) error { return id.SetOption(OptionID, OptionAckTimeout, []byte{14}) }, nil},
		"tos of 4 bytes": {
			func(id *ID) error { return id.SetOption(OptionID, OptionTOS, make([]byte, 4)) }, syscall.EINVAL,
		},
		"no value": {
			func(id *ID) error { return id.SetOption(OptionID, OptionReuseAddr, nil) }, syscall.EINVAL,
		},
		"unknown option":     {func(id *ID) error { return id.SetOption(OptionID, 99, []byte{1}) }, syscall.ENOSYS},
		"unknown level":      {func(id *ID) error { return id.SetOption(9, OptionTOS, []byte{1}) }, syscall.ENOSYS},
		"path, unresolved":   {func(id *ID) error { return id.SetIBPath(make([]byte, 72)) }, syscall.EINVAL},
		"half a path record": {func(id *ID) error { return id.SetIBPath(make([]byte, 36)) }, syscall.EINVAL},
	} {
		t.Run(name, func(t *testing.T) {
			err := row.set(newID(t, channel, PortSpaceTCP))
			if !errors.Is(err, row.want) {
				t.Errorf("error %v, want %v", err, row.want)
			}
		})
	}
	if datagrams, err := channel.CreateID(PortSpaceUDP); err == nil {
		destroyAtEnd(t, datagrams)
		refused(t, datagrams.SetOption(OptionID, OptionAckTimeout, []byte{14}), syscall.EINVAL)
	}
}

// With the option two ids are bound to one port, without it one.
func TestReuseAddress(t *testing.T) {
	channel := newChannel(t, opened(t))
	first := newID(t, channel, PortSpaceTCP)
	lacking(t, setTrue(first, OptionReuseAddr))
	must(t, first.BindAddr(here(t, 0)))
	second := newID(t, channel, PortSpaceTCP)
	must(t, setTrue(second, OptionReuseAddr))
	must(t, second.BindAddr(first.LocalAddr()))
	refused(t, newID(t, channel, PortSpaceTCP).BindAddr(first.LocalAddr()), syscall.EADDRINUSE)
}

func TestGetAddrInfo(t *testing.T) {
	p := opened(t)
	address := here(t, 0).Addr()
	infos, err := p.GetAddrInfo(bounded(t), address.String(), "7471", &AddrInfo{PortSpace: PortSpaceTCP})
	lacking(t, err)
	must(t, err)
	want := netip.AddrPortFrom(address, 7471)
	if len(infos) == 0 || infos[0].Destination != want || infos[0].PortSpace != PortSpaceTCP ||
		infos[0].QPType != QPTypeRC {
		t.Errorf("active: %+v", infos)
	}
	infos, err = p.GetAddrInfo(bounded(t), address.String(), "7471", &AddrInfo{
		PortSpace: PortSpaceUDP, Flags: AddrInfoPassive,
	})
	must(t, err)
	if len(infos) == 0 || infos[0].Source != want || infos[0].QPType != QPTypeUD ||
		infos[0].Flags&AddrInfoPassive == 0 {
		t.Errorf("passive: %+v", infos)
	}
	_, err = p.GetAddrInfo(bounded(t), "", "", nil)
	refused(t, err, syscall.EINVAL)
	_, err = p.GetAddrInfo(bounded(t), "no address", "7471", &AddrInfo{
		Flags: AddrInfoNumericHost, PortSpace: PortSpaceTCP,
	})
	refused(t, err, syscall.EINVAL)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err = p.GetAddrInfo(over, address.String(), "1", nil); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestAddrInfoOfAnID(t *testing.T) {
	channel := newChannel(t, opened(t))
	id := newID(t, channel, PortSpaceTCP)
	lacking(t, id.ResolveAddrInfo(here(t, 0).Addr().String(), "7471", nil))
	expect(t, id, EventAddrInfo, 0)
	infos, err := id.QueryAddrInfo()
	must(t, err)
	if len(infos) == 0 || infos[0].Destination.Port() != 7471 {
		t.Errorf("%+v", infos)
	}
}

func TestWriteEvent(t *testing.T) {
	id := newID(t, newChannel(t, opened(t)), PortSpaceTCP)
	lacking(t, id.WriteEvent(-3, 1<<40))
	if event := expect(t, id, EventUser, -3); event.Arg != 1<<40 {
		t.Errorf("argument %d", event.Arg)
	}
}

// A route that was resolved once serves another id as an option, and its private data comes after that of the
// address.
func TestEndpointOfAnAddress(t *testing.T) {
	p := opened(t)
	listener := syncListener(t, p, &usualQP)
	client, err := p.CreateEP(bounded(t), EPConfig{Destination: listener.LocalAddr(), QP: &usualQP,
		Connect: []byte("first,")})
	must(t, err)
	destroyAtEnd(t, client)
	path, err := client.RoutePath()
	must(t, err)
	if len(path) != 72 {
		t.Errorf("a path of %d bytes", len(path))
	}
	param := usualParam
	param.PrivateData = []byte("second")
	must(t, client.Connect(&param))
	child, err := listener.GetRequest(bounded(t))
	must(t, err)
	destroyAtEnd(t, child)
	if data := string(child.Event().PrivateData[:12]); data != "first,second" {
		t.Errorf("private data %q", data)
	}
	must(t, child.Reject(nil))
	refused(t, client.Complete(bounded(t)), syscall.ECONNREFUSED)
}

func TestUnreachableAddress(t *testing.T) {
	p := opened(t)
	id, err := p.CreateID(PortSpaceTCP)
	lacking(t, err)
	must(t, err)
	destroyAtEnd(t, id)
	nobody := netip.MustParseAddrPort("192.0.2.77:7471") // a network for documentation
	err = complete(t, id, id.ResolveAddr(netip.AddrPort{}, nobody, 100*time.Millisecond))
	if err == nil {
		t.Fatal("resolved an address that no device has")
	}
	refused(t, id.ResolveRoute(time.Second), syscall.EINVAL)
}

// A caller that gives up waiting for answers has at most two lookups in progress, and can ask again when they end.
func TestLookupsAreBounded(t *testing.T) {
	p := opened(t)
	r := p.NewResolver()
	over, cancel := context.WithCancel(bounded(t))
	cancel()
	before := runtime.NumGoroutine()
	for range 1000 {
		if _, err := r.GetAddrInfo(over, "no-such-host.invalid", "1", nil); err == nil {
			t.Fatal("it was found")
		}
	}
	if now := runtime.NumGoroutine(); now > before+lookupsOfOne+8 {
		t.Errorf("%d goroutines, and there were %d", now, before)
	}
	for range lookupsOfOne {
		<-r.free // with which two are under way
	}
	brief, end := context.WithTimeout(bounded(t), 10*time.Millisecond)
	defer end()
	if _, err := r.GetAddrInfo(brief, "127.0.0.1", "1", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("next to two others: %v", err)
	}
	if got := len(p.resolver.free); got != maxLookups {
		t.Errorf("of the provider's %d, %d are free", maxLookups, got)
	}
	if _, err := p.GetAddrInfo(bounded(t), "127.0.0.1", "1", nil); err != nil {
		t.Errorf("who asks by himself: %v", err)
	}
	r.free <- struct{}{}
	for range 3 {
		if _, err := r.GetAddrInfo(bounded(t), "127.0.0.1", "1", nil); err != nil {
			t.Error(err)
		}
	}
}

// A provider is closed at once, whatever name servers are asked meanwhile.
func TestCloseDuringALookup(t *testing.T) {
	over, cancel := context.WithCancel(bounded(t))
	cancel()
	for range 20 {
		p, err := Open("soft")
		must(t, err)
		if _, err := p.GetAddrInfo(over, "no-such-host.invalid", "1", nil); err == nil {
			t.Fatal("it was found")
		}
		must(t, p.Close())
	}
}
