package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// signalStop stops a process as kill -STOP does; the function that it returns lets it go on.
func signalStop(t *testing.T, pid int) func() {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	return func() { _ = syscall.Kill(pid, syscall.SIGCONT) }
}

// traceStop stops each thread of a process as a debugger does.  The calling goroutine keeps its thread, which is the
// tracer, until the function that it returns lets the process go on.
func traceStop(t *testing.T, pid int) func() {
	t.Helper()
	runtime.LockOSThread()
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	var traced []int
	for _, thread := range threads {
		id, _ := strconv.Atoi(thread.Name())
		if err := unix.PtraceSeize(id); err != nil {
			t.Fatalf("trace thread %d: %v", id, err)
		}
		if err := unix.PtraceInterrupt(id); err != nil {
			t.Fatalf("stop thread %d: %v", id, err)
		}
		if _, err := unix.Wait4(id, nil, unix.WALL, nil); err != nil {
			t.Fatalf("wait for thread %d: %v", id, err)
		}
		traced = append(traced, id)
	}
	return func() {
		for _, id := range traced {
			_ = unix.PtraceDetach(id)
		}
		runtime.UnlockOSThread()
	}
}

// TestStoppedProcessesGetNothing: any two of three servers that share the port are stopped. The third serves new
// clients and one that it has. A server that continues serves again.
func TestStoppedProcessesGetNothing(t *testing.T) {
	const first, servers = 7600, 3
	const line = "ping data: rdma-ping-"
	var fabrics fabrics
	h := startHosts(t)
	fabric := fabrics.name()
	var near []*startedProgram
	t.Cleanup(func() {
		for index, server := range near {
			if t.Failed() {
				t.Logf("server %d:\n%s", index, server.output.String())
			}
		}
	})
	for index := range servers {
		near = append(
			near,
			startProgramBy(
				t, on(h.near), fabric, "rping", "-s", "-P", "-a", nearHost, "-p", strconv.Itoa(first+index), "-S",
				"1000",
			),
		)
	}
	for index := range servers {
		awaitHostPort(t, h.near, first+index)
	}
	client := func(index int, form string) *startedProgram {
		words := fmt.Sprintf(form, fmt.Sprintf("rping -c -a %s -p %d -S 1000 -V", nearHost, first+index))
		return startProgramBy(t, on(h.far), fabric, strings.Fields(words)...)
	}
	const short, forEver = "%s -C 5", "stdbuf -oL %s -v"
	for live := range servers {
		client(live, short).succeed(t)
		long := client(live, forEver)
		long.print(t, line, 1)
		goOn := []func(){
			signalStop(t, near[(live+1)%servers].Process.Pid), traceStop(t, near[(live+2)%servers].Process.Pid),
		}
		for range 4 {
			client(live, short).succeed(t)
		}
		long.print(t, line, strings.Count(long.output.String(), line)+1000)
		for _, each := range goOn {
			each()
		}
		if err := long.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		long.Wait()
	}
	for index := range servers {
		client(index, short).succeed(t)
	}
}
