package hostfuncs

import (
	"syscall"
	"testing"
	"unsafe"
)

// The reports about a guest that listens: where, its end, and failures.
func TestListening(t *testing.T) {
	var news []Listening
	i := newInstance(t, 1<<16, Config{Listening: func(l Listening) { news = append(news, l) }})
	passive := AddrInfo{StructSize: uint32(unsafe.Sizeof(AddrInfo{})), Flags: raiPassive}
	put(i, infoAt, passive)
	ep := must(t, i, "create_ep", 0, infoAt, 0, 0)
	if len(news) != 0 {
		t.Errorf("reported before it listens: %v", news)
	}
	must(t, i, "listen", ep, 4)
	port := uint16(must(t, i, "src_port", ep))
	if len(news) != 1 || news[0].At.Port() != port || news[0].Over || news[0].Err != nil {
		t.Fatalf("%+v, port %d", news, port)
	}
	taken := passive
	must(t, i, "device_address", 0, infoAt+40)
	taken.Source = take[Address](i, infoAt+40)
	taken.Source.Port = port
	put(i, infoAt, taken)
	expect(t, i, syscall.EADDRNOTAVAIL, "create_ep", 0, infoAt, 0, 0)
	if len(news) != 2 || news[1].At.Port() != port || news[1].Err == nil {
		t.Errorf("%+v", news)
	}
	must(t, i, "destroy_ep", ep)
	if len(news) != 3 || news[2] != (Listening{At: news[0].At, Over: true}) {
		t.Errorf("%+v", news)
	}
	// One that is left is over with its guest.
	put(i, infoAt, passive)
	must(t, i, "listen", must(t, i, "create_ep", 0, infoAt, 0, 0), 4)
	if _, err := i.Close(); err != nil {
		t.Error(err)
	}
	if len(news) != 5 || !news[4].Over {
		t.Errorf("%+v", news)
	}
}
