package program

import (
	"bytes"
	"encoding/binary"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdmarun/rdmacore"
)

// testTime bounds what must happen.
const testTime = time.Minute

// deviceOf is a device with process top as its program.
func deviceOf(t *testing.T, top int) *Device {
	t.Helper()
	d, err := NewDevice("server")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := d.begin(top); err != nil {
		t.Fatal(err)
	}
	return d
}

// connect connects as a process of the program does.
func connect(t *testing.T, d *Device) *net.UnixConn {
	t.Helper()
	control, _ := d.addresses()
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: "@" + control, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(testTime))
	return conn
}

// hello is the first message of a process, a struct core_control_hello with one counter.
func hello(t *testing.T) []byte {
	t.Helper()
	const version, faultSize, counters, name = 0, 4, 8, 12
	message := make([]byte, rdmacore.ControlMessageMax)
	copy(message[version:], rdmacore.ControlWelcome()[:4])
	binary.NativeEndian.PutUint32(message[counters:], 1)
	copy(message[name:], "sent_pkts")
	for size := uint32(0); ; size++ {
		if _, err := rdmacore.DecodeControlHello(message); err == nil {
			return message
		}
		const longest = 1 << 16
		if size > longest {
			t.Fatal("no size of a fault is valid")
		}
		binary.NativeEndian.PutUint32(message[faultSize:], size)
	}
}

// welcomed takes the first message to a process, and returns the file that comes with it.
func welcomed(t *testing.T, conn *net.UnixConn) (file int) {
	t.Helper()
	message, rights := make([]byte, rdmacore.ControlMessageMax), make([]byte, unix.CmsgSpace(4))
	n, rightsSize, _, _, err := conn.ReadMsgUnix(message, rights)
	if err != nil || !bytes.Equal(message[:n], rdmacore.ControlWelcome()) {
		t.Fatalf("the first message: %x, %v", message[:n], err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:rightsSize])
	if err != nil || len(messages) != 1 {
		t.Fatalf("%d messages with descriptors, %v", len(messages), err)
	}
	files, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(files) != 1 {
		t.Fatalf("%d descriptors, %v", len(files), err)
	}
	t.Cleanup(func() { _ = unix.Close(files[0]) })
	return files[0]
}

// greet says hello, and waits until the device is ready.  The file is what the process counts in.
func greet(t *testing.T, conn *net.UnixConn) (file int) {
	t.Helper()
	file = welcomed(t, conn)
	if _, err := conn.Write(hello(t)); err != nil {
		t.Fatal(err)
	}
	if kind, _ := receive(t, conn); kind != rdmacore.ControlReady {
		t.Fatalf("message of kind %d, want READY", kind)
	}
	return file
}

// count writes a value of the counter.
func count(t *testing.T, file int, value uint64) {
	t.Helper()
	if _, err := unix.Pwrite(file, binary.NativeEndian.AppendUint64(nil, value), 0); err != nil {
		t.Fatal(err)
	}
}

// receive is the next request; 0: there is none any more.
func receive(t *testing.T, conn *net.UnixConn) (kind rdmacore.ControlKind, number uint32) {
	t.Helper()
	message := make([]byte, rdmacore.ControlMessageMax)
	n, err := conn.Read(message)
	if os.IsTimeout(err) {
		t.Fatal(err)
	}
	if err != nil || n == 0 {
		return 0, 0
	}
	return rdmacore.ControlKind(binary.NativeEndian.Uint32(message)), binary.NativeEndian.Uint32(message[4:])
}

// reply sends an answer, a struct core_control_answer.
func reply(t *testing.T, conn *net.UnixConn, kind rdmacore.ControlKind, number uint32) {
	t.Helper()
	message := make([]byte, 16)
	binary.NativeEndian.PutUint32(message, uint32(kind))
	binary.NativeEndian.PutUint32(message[4:], number)
	if _, err := conn.Write(message); err != nil {
		t.Fatal(err)
	}
}

// Only processes that run at the same time are limited, and nothing but their sums is kept of those that have ended.
func TestManyShortProcesses(t *testing.T) {
	t.Parallel()
	d := deviceOf(t, os.Getpid())
	const processes = maxConnected + 10
	for range processes {
		conn := connect(t, d)
		count(t, greet(t, conn), 1)
		conn.Close()
	}
	d.end()
	counters, err := d.Counters()
	if err != nil || counters["sent_pkts"] != processes || d.Opened() != processes {
		t.Errorf("counters %v, %d opened, %v; want %d", counters, d.Opened(), err, processes)
	}
	if len(d.processes) != 0 {
		t.Errorf("%d processes are kept", len(d.processes))
	}
}

func TestTooManyProcesses(t *testing.T) {
	t.Parallel()
	d := deviceOf(t, os.Getpid())
	first := connect(t, d)
	greet(t, first)
	for range maxConnected - 1 {
		greet(t, connect(t, d))
	}
	if _, err := d.Fault(rdmacore.Fault{Probability: 2}); err == nil || strings.Contains(err.Error(), "more than") {
		t.Errorf("with as many processes as are allowed: %v", err)
	}
	if kind, _ := receive(t, connect(t, d)); kind != 0 {
		t.Errorf("one process more got a message of kind %d", kind)
	}
	if _, err := d.Counters(); err == nil || !strings.Contains(err.Error(), "more than 1024 processes") {
		t.Errorf("counters: %v", err)
	}
	first.Close()
	for end := time.Now().Add(testTime); ; time.Sleep(time.Millisecond) {
		d.mutex.Lock()
		connected := len(d.connected)
		d.mutex.Unlock()
		if connected < maxConnected {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the end of a process leaves no room")
		}
	}
	greet(t, connect(t, d))
}

// Any process of the host may connect, and has no effect.
func TestManyStrangers(t *testing.T) {
	t.Parallel()
	sleep := exec.Command("sleep", "1000")
	if err := sleep.Start(); err != nil {
		t.Skip(err)
	}
	defer func() {
		_ = sleep.Process.Kill()
		_ = sleep.Wait()
	}()
	d := deviceOf(t, sleep.Process.Pid)
	for range maxConnected + 10 {
		conn := connect(t, d)
		if kind, _ := receive(t, conn); kind != 0 {
			t.Fatalf("a stranger got a message of kind %d", kind)
		}
		conn.Close()
	}
	if counters, err := d.Counters(); err != nil || len(counters) != 0 || len(d.connected) != 0 {
		t.Errorf("counters %v, %v; %d connected", counters, err, len(d.connected))
	}
}

// Answers that nothing asked for make rdmarun send nothing.
func TestUnaskedAnswers(t *testing.T) {
	t.Parallel()
	d := deviceOf(t, os.Getpid())
	conn := connect(t, d)
	greet(t, conn)
	for number := range uint32(2000) {
		reply(t, conn, rdmacore.ControlFaultAdd, number)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := d.HoldEvents(true)
		failed <- err
	}()
	kind, number := receive(t, conn)
	if kind != rdmacore.ControlHoldEvents {
		t.Fatalf("message of kind %d, want HOLD_EVENTS", kind)
	}
	reply(t, conn, kind, number)
	if err := <-failed; err != nil {
		t.Error(err)
	}
	endsQuietly(t, conn, "answer")
}

// endsQuietly ends what a process sends, and checks that no message comes after the last.
func endsQuietly(t *testing.T, conn *net.UnixConn, last string) {
	t.Helper()
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if kind, _ := receive(t, conn); kind != 0 {
		t.Errorf("message of kind %d after the %s", kind, last)
	}
}

// What a process counts is seen while it runs, and the memory stays as long as it is.
func TestTallyOfAProcess(t *testing.T) {
	t.Parallel()
	d := deviceOf(t, os.Getpid())
	conn := connect(t, d)
	file := greet(t, conn)
	for _, value := range []uint64{7, 1<<64 - 1} {
		count(t, file, value)
		if counters, err := d.Counters(); err != nil || counters["sent_pkts"] != value {
			t.Errorf("counters %v, %v; want %d", counters, err, value)
		}
	}
	for _, size := range []int64{0, rdmacore.TallySize - 1, rdmacore.TallySize + 1} {
		if err := unix.Ftruncate(file, size); err == nil {
			t.Errorf("a process changes the size of the memory to %d", size)
		}
	}
	if _, err := unix.FcntlInt(uintptr(file), unix.F_ADD_SEALS, unix.F_SEAL_WRITE); err == nil {
		t.Error("a process adds a seal")
	}
}

// A fault that was answered too late is removed.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	d := deviceOf(t, os.Getpid())
	conn := connect(t, d)
	greet(t, conn)
	if _, err := d.Fault(rdmacore.Fault{Data: true}); err == nil || !strings.Contains(err.Error(), "not answer") {
		t.Fatalf("fault: %v", err)
	}
	kind, number := receive(t, conn)
	if kind != rdmacore.ControlFaultAdd {
		t.Fatalf("message of kind %d, want FAULT_ADD", kind)
	}
	for range 2 {
		reply(t, conn, kind, number)
	}
	if kind, _ := receive(t, conn); kind != rdmacore.ControlFaultRemove {
		t.Errorf("message of kind %d, want FAULT_REMOVE", kind)
	}
	endsQuietly(t, conn, "removal")
}

// A process that reads no more, and does not end, makes operations fail in time.
func TestProcessThatReadsNoMore(t *testing.T) {
	t.Parallel()
	d := deviceOf(t, os.Getpid())
	conn := connect(t, d)
	greet(t, conn)
	d.mutex.Lock()
	p := d.processes[0]
	d.faults = append(d.faults, &fault{rules: map[*process]uint32{p: 1}})
	d.mutex.Unlock()
	if err := conn.CloseRead(); err != nil {
		t.Fatal(err)
	}
	for name, operation := range map[string]func() error{
		"hold events": func() error { _, err := d.HoldEvents(true); return err },
		"heal":        func() error { _, err := d.heal(d.faults[0]); return err },
	} {
		failed := make(chan error, 1)
		go func() { failed <- operation() }()
		select {
		case err := <-failed:
			if err == nil || !strings.Contains(err.Error(), "has shut its control channel down") {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(testTime):
			conn.Close()
			t.Fatalf("%s does not return", name)
		}
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if len(p.answers) != 0 {
		t.Errorf("%d answers are awaited still", len(p.answers))
	}
}

// Processes that start and do not answer delay an operation for a bounded time.
func TestProcessesThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	d := deviceOf(t, os.Getpid())
	if _, err := d.Fault(rdmacore.Fault{Data: true}); err != nil {
		t.Fatal(err)
	}
	const processes = 60
	for range processes {
		conn := connect(t, d)
		welcomed(t, conn)
		if _, err := conn.Write(hello(t)); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(testTime); ; time.Sleep(time.Millisecond) {
		d.mutex.Lock()
		connected, controlled := len(d.connected), len(d.processes)
		d.mutex.Unlock()
		if connected == processes && controlled > 0 { // else nothing is asked
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d processes are connected, want %d", connected, processes)
		}
	}
	failed := make(chan error, 1)
	go func() {
		_, err := d.HoldEvents(true)
		failed <- err
	}()
	select {
	case err := <-failed:
		if err == nil {
			t.Error("no error, though no process answers")
		}
	case <-time.After(testTime):
		t.Error("it waits for all of them")
	}
}

func TestDescends(t *testing.T) {
	type status struct {
		state  string
		parent int
	}
	const top = 10
	for name, test := range map[string]struct {
		walks []map[int]status // of one walk after the other; the last one stays
		want  bool
	}{
		"a child":     {walks: []map[int]status{{30: {"S", top}}}, want: true},
		"of a zombie": {walks: []map[int]status{{30: {"S", 20}, 20: {"Z", top}}}, want: true},
		"a stranger":  {walks: []map[int]status{{30: {"S", 20}, 20: {"S", 1}}}},
		"it ended":    {walks: []map[int]status{{}}},
		"its parent ended during the walk": {
			walks: []map[int]status{{30: {"S", 20}}, {30: {"S", 25}}, {30: {"S", top}}}, want: true,
		},
		"a parent that never exists": {walks: []map[int]status{{30: {"S", 20}}}},
	} {
		t.Run(name, func(t *testing.T) {
			const pid = 30
			walk := -1
			got := descends(pid, top, func(at int) (string, int) {
				if at == pid {
					walk = min(walk+1, len(test.walks)-1)
				}
				found := test.walks[walk][at]
				return found.state, found.parent
			})
			if got != test.want {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}
