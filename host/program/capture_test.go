package program_test

import (
	"encoding/hex"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdmarun/host/pcapng"
	"rdmarun/host/program"
	"rdmarun/rdmacore"
)

// captured are packets of a program, by their interfaces.
type captured struct {
	mutex   sync.Mutex
	packets map[string][]rdmacore.CapturePacket
}

func (c *captured) take(p *rdmacore.CapturePacket) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	kept := *p
	kept.Bytes = slices.Clone(p.Bytes)
	c.packets[p.Interface] = append(c.packets[p.Interface], kept)
}

// captureOf is a device of a role that captures, and what it captures.
func captureOf(t *testing.T, role string) (*program.Device, *captured) {
	t.Helper()
	device, err := program.NewDevice(role)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { device.Close() })
	c := &captured{packets: map[string][]rdmacore.CapturePacket{}}
	if err := device.Capture(c.take); err != nil {
		t.Fatal(err)
	}
	return device, c
}

// TestCaptureOfPrograms: each packet of a program comes, in order and whole, and the first program has the role's name.
func TestCaptureOfPrograms(t *testing.T) {
	t.Parallel()
	soft := softOf(t)
	const pings = 20
	device, got := captureOf(t, "client")
	server := startServer(t, soft, "7527", "-P", "-S", "300")
	before := time.Now()
	run := func() {
		config := onSoft(t, soft, "rping", "-c", "-a", "127.0.0.1", "-p", "7527", "-C", "20", "-S", "300")
		config.Device = device
		finish(t, start(t, config))
	}
	heal, err := device.Fault(rdmacore.Fault{Data: true, Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	run()
	if _, err := heal(); err != nil {
		t.Error(err)
	}
	run()
	server.Stop(t.Context())
	if err := device.Close(); err != nil {
		t.Error(err)
	}
	if len(got.packets) != 2 {
		t.Errorf("packets of %d interfaces, want 2", len(got.packets))
	}
	for name, packets := range got.packets {
		if name != "client" && !strings.HasPrefix(name, "client, process ") {
			t.Errorf("an interface %q", name)
		}
		outbound, payload, faults := 0, 0, 0
		last := uint64(before.UnixNano())
		for i, packet := range packets {
			if packet.Time < last {
				t.Errorf("%s: packet %d was sent before the one in front of it", name, i)
			}
			last = packet.Time
			if packet.Length != uint32(len(packet.Bytes)) || packet.Bytes[0] != 0x45 {
				t.Errorf(
					"%s: %d bytes of %d, of IP version %d", name, len(packet.Bytes), packet.Length, packet.Bytes[0]>>4,
				)
			}
			if !strings.Contains(packet.Description, "rping") {
				t.Errorf("%s: its description is %q", name, packet.Description)
			}
			if !packet.Inbound {
				outbound++
			} else if packet.Length > 300 {
				payload++
			}
			if strings.HasPrefix(packet.FaultResult, "lost by fault") {
				faults++
			}
		}
		// A ping reads 300 bytes, and 300 are written.
		if outbound < 3*pings || payload != 0 && payload < pings {
			t.Errorf("%s: %d packets left, and %d with the data came", name, outbound, payload)
		}
		if want := map[bool]int{true: 1}[name == "client"]; faults != want {
			t.Errorf("%s: %d packets were lost, want %d", name, faults, want)
		}
	}
}

// TestMalformedCapture: what a process sends that is not a capture ends its capture with an error, and nothing else.
func TestMalformedCapture(t *testing.T) {
	t.Parallel()
	for name, sent := range map[string]string{
		"text":         "GET / HTTP/1.1\r\n\r\n",
		"half a block": "\x06\x00\x00\x00\x40\x00\x00\x00",
		"a packet of no interface": "\x06\x00\x00\x00\x20\x00\x00\x00" + strings.Repeat("\x00", 20) +
			"\x20\x00\x00\x00",
		"another program's interface": "\x01\x00\x00\x00\x14\x00\x00\x00" + strings.Repeat("\x00", 8) +
			"\x14\x00\x00\x00",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			device, got := captureOf(t, "server")
			config := onSoft(t, softOf(t), "python3", "-c", `
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect("\0" + os.environ["RDMARUN_EXEC_CAPTURE"][1:])
s.sendall(bytes.fromhex(sys.argv[1]))
s.shutdown(socket.SHUT_WR)
s.recv(1)  # until rdmarun has read it`, hex.EncodeToString([]byte(sent)))
			config.Device = device
			succeed(t, start(t, config))
			if err := device.Close(); !errors.Is(err, pcapng.ErrMalformed) ||
				!strings.Contains(err.Error(), "of server") {
				t.Errorf("%v", err)
			}
			if len(got.packets) != 0 {
				t.Errorf("packets of %d interfaces", len(got.packets))
			}
		})
	}
}

// TestCaptureOfOthers: a process that is not of the program sends no packets.
func TestCaptureOfOthers(t *testing.T) {
	t.Parallel()
	device, got := captureOf(t, "server")
	config := onSoft(t, softOf(t), "sh", "-c", "echo $RDMARUN_EXEC_CAPTURE; sleep 60")
	config.Device = device
	p := start(t, config)
	name := awaitLine(t, p, "@")
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(waitLimit))
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("a process of another program is served")
	}
	if err := p.Signal(unix.SIGKILL); err != nil {
		t.Error(err)
	}
	await(t, p)
	if err := device.Close(); err != nil || len(got.packets) != 0 {
		t.Errorf("%v, packets of %d interfaces", err, len(got.packets))
	}
}
