package guest_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"rdmarun/host/guest"
)

// hostileVariable is set in the process of TestHostileGuestsBesideAPair that has the guests.
const hostileVariable = "RDMARUN_TEST_HOSTILE"

const (
	hostileMemory = 16 << 20
	hostileTime   = time.Second
	// What a process has that runs no guest at all, with room for the race detector, garbage and two guests of Go.
	fixedMemory = 512 << 20
)

// hostile are guests that want more than they may have, with what each needs to begin.
var hostile = map[string]int64{
	"objects": hostileMemory, "tables": hostileMemory, "grow": hostileMemory, "print": hostileMemory,
	"host_calls": hostileMemory, "spin": hostileMemory, "recurse": hostileMemory, "subscribe": 2 * hostileMemory,
	"fill": 136 << 20, "random": 136 << 20, "buffers": 136 << 20,
}

// A pair runs together with guests that request everything. It works as if it were alone, and all of them together use
// no more than they may.
func TestHostileGuestsBesideAPair(t *testing.T) {
	if os.Getenv(hostileVariable) != "" {
		besideAPair(t)
		return
	}
	r := newRuntime(t, guest.InterruptMetered)
	compileGo(t, r, pingpong) // for the cache: a compiler takes memory of its own
	command := exec.CommandContext(testContext(t), os.Args[0], "-test.run=^TestHostileGuestsBesideAPair$", "-test.v")
	command.Env = append(os.Environ(), hostileVariable+"=1", guest.CacheVariable+"="+cacheDir)
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	most := int64(fixedMemory)
	for _, memory := range hostile {
		most += memory
	}
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("%v\n%s", err, &said)
			}
			return
		case <-tick.C:
		}
		if size := residentSize(command.Process.Pid); size > most {
			command.Process.Kill()
			<-ended
			t.Fatalf("the process had %dMiB; its guests may have %d\n%s", size>>20, most>>20, &said)
		}
	}
}

// residentSize is how much memory a process has (statm of proc(5)); 0 when it is gone.
func residentSize(pid int) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// besideAPair is the process that is looked at from outside.
func besideAPair(t *testing.T) {
	// Go's poller has descriptors from its first use on, which are none of the provider's.
	if reader, writer, err := os.Pipe(); err == nil {
		reader.Close()
		writer.Close()
	}
	r, p := newRuntime(t, guest.InterruptMetered), newProvider(t)
	var guests []*guest.Guest
	for name, memory := range hostile {
		for range 2 {
			guest, err := r.Start(testContext(t), compileWAT(t, r, name), guest.Config{
				Name: name, Provider: p, Stdout: io.Discard, Limits: guest.Limits{Memory: memory, Time: hostileTime},
			})
			if err != nil {
				t.Fatal(err)
			}
			guests = append(guests, guest)
			if memory > 2*hostileMemory {
				break // one of the large
			}
		}
	}
	var serverOut, clientOut output
	server := startServer(t, r, p, &serverOut)
	// The client verifies every byte that comes back.
	result := r.Run(testContext(t), compileGo(t, r, pingpong), guest.Config{
		Name: "client", Provider: p, Args: []string{"--client=self", "--count=200", "--writes=200", "--size=65536"},
		Stdout: &clientOut, Stderr: &clientOut,
	})
	if !result.OK() {
		t.Errorf("client: %v\n%s", result.Err, &clientOut)
	}
	if result, err := server.Wait(testContext(t)); err != nil || !result.OK() {
		t.Errorf("server: %v %v\n%s", err, result.Err, &serverOut)
	}
	for _, each := range guests {
		result, err := each.Wait(testContext(t))
		if err != nil || result.Outcome == guest.Failed {
			t.Errorf("%s: %v %s %v", each.Name(), err, result.Outcome, result.Err)
		}
		// All of them share a processor, so this only checks that none is forgotten.
		if result.Duration > hostileTime+30*time.Second {
			t.Errorf("%s ended after %s", each.Name(), result.Duration)
		}
	}
	if status, err := os.Open("/proc/self/status"); err == nil {
		defer status.Close()
		for lines := bufio.NewScanner(status); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "VmHWM") {
				t.Log(lines.Text())
			}
		}
	}
}
