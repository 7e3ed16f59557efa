// Package unixsocket is where processes of this host connect to rdmarun: abstract Unix sockets, and who connects.
package unixsocket

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// acceptPace is the time until the next attempt after accept failed, which it does for want of descriptors.
const acceptPace = 50 * time.Millisecond

// Listen listens at an abstract name with a purpose in it. No other socket has this name. It is random, but any process
// of the host can read it in /proc/net/unix. network is unix or unixpacket.
func Listen(network, purpose string) (*net.UnixListener, error) {
	name := fmt.Sprintf("@rdmarun-%s-%d-%s", purpose, os.Getpid(), rand.Text())
	return net.ListenUnix(network, &net.UnixAddr{Name: name, Net: network})
}

// Accept calls take for each connection, with the process at its other end, until the listener is closed or its
// deadline has passed. take closes the connection. failed gets other errors of accept, which Accept tries again.
//
// Any process of the host may connect: take checks which one it is.
func Accept(listener *net.UnixListener, failed func(error), take func(conn *net.UnixConn, pid int)) {
	for {
		conn, err := listener.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed), errors.Is(err, os.ErrDeadlineExceeded):
			return
		case err != nil:
			failed(err)
			time.Sleep(acceptPace)
			continue
		}
		if pid, err := process(conn); err == nil {
			take(conn, pid)
		} else {
			conn.Close()
		}
	}
}

// process is the process at the other end, as it was when it connected.
func process(conn *net.UnixConn) (pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	failed := raw.Control(func(fd uintptr) {
		var peer *unix.Ucred
		if peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(peer.Pid)
		}
	})
	return pid, errors.Join(err, failed)
}
