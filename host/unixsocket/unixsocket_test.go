package unixsocket

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// connect connects to a listener, from this process.
func connect(t *testing.T, listener *net.UnixListener) *net.UnixConn {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, listener.Addr().(*net.UnixAddr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func listen(t *testing.T) *net.UnixListener {
	t.Helper()
	listener, err := Listen("unix", "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener
}

// TestNames: listeners for one purpose have different names, which show the purpose.
func TestNames(t *testing.T) {
	first, second := listen(t).Addr().String(), listen(t).Addr().String()
	if first == second || !strings.HasPrefix(first, "@rdmarun-test-") || !strings.HasPrefix(second, "@rdmarun-test-") {
		t.Errorf("%q and %q", first, second)
	}
}

// TestAccept takes connections with the process that made them, and ends with the listener or its deadline.
func TestAccept(t *testing.T) {
	for what, end := range map[string]func(*net.UnixListener) error{
		"closed":   (*net.UnixListener).Close,
		"deadline": func(l *net.UnixListener) error { return l.SetDeadline(time.Now()) },
	} {
		t.Run(what, func(t *testing.T) {
			listener := listen(t)
			taken, ended := make(chan int, 2), make(chan struct{})
			go func() {
				defer close(ended)
				Accept(listener, func(err error) { t.Error(err) }, func(conn *net.UnixConn, pid int) {
					conn.Close()
					taken <- pid
				})
			}()
			for range 2 {
				connect(t, listener)
				if pid := <-taken; pid != os.Getpid() {
					t.Errorf("process %d connected, not %d", pid, os.Getpid())
				}
			}
			if err := end(listener); err != nil {
				t.Fatal(err)
			}
			<-ended
		})
	}
}

// TestAcceptAgain: an error of accept is reported, and the connection that waits is taken once there are descriptors.
func TestAcceptAgain(t *testing.T) {
	if os.Getenv("RDMARUN_TEST_DESCRIPTORS") == "" { // the limit is that of a process
		again := exec.Command(os.Args[0], "-test.run=^TestAcceptAgain$")
		again.Env = append(os.Environ(), "RDMARUN_TEST_DESCRIPTORS=1")
		if output, err := again.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		return
	}
	listener := listen(t)
	connect(t, listener)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	failures := 0
	Accept(listener, func(err error) {
		failures++
		if failures > 1 {
			t.Errorf("failed again: %v", err)
		}
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
			t.Fatal(err)
		}
	}, func(conn *net.UnixConn, _ int) {
		conn.Close()
		listener.Close()
	})
	if failures != 1 {
		t.Errorf("%d failures", failures)
	}
}
