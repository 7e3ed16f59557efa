package rdmacore

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// TestNotices: who sends what is no packet to the port of a queue pair is named, and the last line comes with the end.
func TestNotices(t *testing.T) {
	softOnly(t, "what soft is made of")
	var lines []string
	notices, err := NewNotices(func(line string) { lines = append(lines, line) })
	must(t, err)
	p, err := Open("soft", WithLink(LinkUDP), WithNotices(notices))
	must(t, err)
	t.Run("packets", func(t *testing.T) { // its cleanups free what is on the provider
		server, client := newSide(t, p), newSide(t, p)
		request(t, client, listen(t, server, &usualQP), usualQP, &usualParam)
		// Blocks of ports take packets of blocks alone.
		dialer := net.Dialer{LocalAddr: &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 65000}}
		socket, err := dialer.Dial("udp", fmt.Sprintf("127.0.0.1:%d", 61000+client.id.QP().Num()>>12))
		must(t, err)
		defer socket.Close()
		for range 10 {
			_, err := socket.Write([]byte("this is no packet of RoCE"))
			must(t, err)
		}
		ctx := bounded(t)
		for received := uint64(0); received < 10; time.Sleep(time.Millisecond) {
			must(t, ctx.Err())
			counters, _ := client.id.Device().Counters()
			received = counters["rx_icrc_encapsulated"]
		}
	})
	must(t, p.Close())
	must(t, notices.Close())
	if text := strings.Join(lines, "\n"); !strings.Contains(
		text, "packets with a wrong ICRC, the last from 127.0.0.1",
	) {
		t.Errorf("said: %q", text)
	}
}
