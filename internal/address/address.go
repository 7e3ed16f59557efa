// Package address gives tests addresses to listen at.
package address

import (
	"net"
	"testing"
)

// Free is an address of this host, with a TCP port that was free a moment ago.
func Free(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
