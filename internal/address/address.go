// Package address gives tests addresses to listen at.
package address

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// The kernel gives connections no port of this range (ip_local_port_range begins at 32768 by default). So only another
// test can take one before the caller listens.
const first, count, tries = 20_000, 12_000, 100

// Free is an address of this host, with a TCP port that was free a moment ago.
func Free(t *testing.T) string {
	t.Helper()
	var err error
	for range tries {
		var listener net.Listener
		listener, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(first+rand.IntN(count))))
		if err == nil {
			defer listener.Close()
			return listener.Addr().String()
		}
	}
	t.Fatal(err)
	return ""
}
