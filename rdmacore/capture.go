package rdmacore

// #include <stdlib.h>
// #include "core/core.h"
import "C"

import (
	"net/netip"
	"slices"
	"syscall"
	"time"
	"unicode/utf8"
	"unsafe"
)

// Capture is a pcapng file, in which every address that sends is an interface.
type Capture struct {
	c    *C.struct_soft_capture_file
	path string
}

// CaptureOptions select what is kept of packets.
type CaptureOptions struct {
	// Application is the name of the writing program in the file.
	Application string
	// SnapLength is how many bytes of a packet are kept, from its IP header on; 0: all.
	SnapLength uint32
}

// CaptureTotals is what became of the packets.
type CaptureTotals struct {
	Packets uint64 // in the file
	Missing uint64 // not in it: after an error, or because the reader of the pipe was too slow
}

// CreateCapture creates the file, or opens a pipe, for providers that are opened WithCapture.  It waits at most ten
// seconds for a reader of the pipe.
func CreateCapture(path string, options CaptureOptions) (*Capture, error) {
	const op = "capture"
	cpath, application := C.CString(path), C.CString(options.Application)
	defer C.free(unsafe.Pointer(cpath))
	defer C.free(unsafe.Pointer(application))
	c := &Capture{path: path}
	chosen := C.struct_core_capture_options{path: cpath, application: application, snap_length: C.uint32_t(
		options.SnapLength,
	),
		reader_timeout: C.CORE_CAPTURE_READER_TIMEOUT}
	if result := C.core_capture_open(&chosen, &c.c); result < 0 {
		errno := syscall.Errno(-result)
		switch errno {
		case syscall.ENXIO:
			return nil, fail(op, errno, "the pipe %s has no reader; start its reader first", path)
		case syscall.ELOOP:
			return nil, fail(
				op, errno, "%s is a symbolic link of another user, or of too many; remove it, or name another path",
				path,
			)
		case syscall.EPERM:
			return nil, fail(op, errno, "%s belongs to another user; remove it, or name another path", path)
		case syscall.EMLINK:
			return nil, fail(op, errno, "%s has a second name (a hard link); remove it, or name another path", path)
		}
		return nil, fail(op, errno, "%s", path)
	}
	return c, nil
}

// Close ends the file, once every provider that writes to it is closed.  An error names the time from which packets
// are missing.
func (c *Capture) Close() (CaptureTotals, error) {
	const op = "capture"
	if c == nil || c.c == nil {
		return CaptureTotals{}, closed(op, "capture")
	}
	var result C.struct_core_capture_result
	C.core_capture_close(c.c, &result)
	c.c = nil
	totals := CaptureTotals{Packets: uint64(result.packets), Missing: uint64(result.missing)}
	if errno := syscall.Errno(result.error); errno != 0 {
		return totals, fail(
			op, errno, "%s ends after %d packets, and %d are missing", c.path, totals.Packets, totals.Missing,
		)
	}
	return totals, nil
}

// WithCapture writes the packets that soft sends to c; label names soft's interfaces in the file.  Times are those of
// soft's clock: since 1970, and of a virtual clock, which begins a second after that, as it shows them.
func WithCapture(c *Capture, label string) Option {
	return func(options *C.struct_core_options) {
		options.capture = c.c
		options.capture_label = captureText(label) // Open frees it
	}
}

// Captures reports whether what the provider sends is written to a Capture.
func (p *Provider) Captures() bool { return p != nil && p.captures }

// CaptureName gives the interface of an address its name, before its first packet.
func (p *Provider) CaptureName(address netip.Addr, name string) {
	if !p.Captures() {
		return
	}
	text := captureText(name)
	defer C.free(unsafe.Pointer(text))
	at := toCAddress(netip.AddrPortFrom(address, 0))
	C.core_capture_name(p.c, &at, text)
}

// CaptureStep sets the step that the role with the address executes. text is the comment of the packets that it sends
// from now on; "" ends that. Packets of other addresses belong to the step that began last. The zero address is that
// of no role.
func (p *Provider) CaptureStep(address netip.Addr, number uint32, text string) {
	if !p.Captures() {
		return
	}
	ctext := captureText(text)
	defer C.free(unsafe.Pointer(ctext))
	at := toCAddress(netip.AddrPortFrom(address, 0))
	C.core_capture_step(p.c, &at, C.uint32_t(number), ctext)
}

// captureText is a text that is no longer than the core keeps, and whole characters; the caller frees it.
func captureText(text string) *C.char {
	end := len(text)
	if end > C.CORE_CAPTURE_TEXT-1 {
		for end = C.CORE_CAPTURE_TEXT - 1; end > 0 && !utf8.RuneStart(text[end]); end-- {
		}
	}
	return C.CString(text[:end])
}

// CapturedPacket is what is noted of a packet of a Capture.
type CapturedPacket struct {
	Time        time.Duration // as Clock.Now has it
	Step        uint32        // of CaptureStep; 0: none
	From, To    netip.Addr
	QueuePair   uint32 // where it goes
	Opcode      uint8  // of its BTH
	Syndrome    uint8  // of an acknowledgement
	Message     CMMessage
	PSN, Length uint32
	FaultResult string // what faults did to it; "": nothing
	Interface   string // where another process captured it (CaptureAdd); "": this one did
	Inbound     bool   // it came to the interface; otherwise it left it
}

// CapturePacket is a packet that another process has captured.
type CapturePacket struct {
	Interface   string // a name that is the interface's alone
	Description string // of the interface; not empty
	Time        uint64 // nanoseconds since 1970
	Bytes       []byte // from its IP header on
	Length      uint32 // of the packet, of which Bytes may be a part
	Inbound     bool   // it came to the interface; otherwise it left it
	FaultResult string // what faults did to it; "": nothing
}

// CaptureAdd writes a packet of another process to the Capture, as of the step that began last.  It waits while the
// writer of the file is behind, at most about 100 ms.
func (p *Provider) CaptureAdd(packet *CapturePacket) {
	if !p.Captures() {
		return
	}
	c := C.struct_core_capture_packet{
		_interface: captureText(packet.Interface), description: captureText(packet.Description),
		time: C.uint64_t(packet.Time), bytes: (*C.uint8_t)(C.CBytes(packet.Bytes)),
		captured: C.uint32_t(len(packet.Bytes)), length: C.uint32_t(packet.Length), inbound: C.bool(packet.Inbound),
		fault_result: captureText(packet.FaultResult),
	}
	C.core_capture_add(p.c, &c)
	for _, text := range []*C.char{c._interface, c.description, c.fault_result} {
		C.free(unsafe.Pointer(text))
	}
	C.free(unsafe.Pointer(c.bytes))
}

// Captured takes the notes of packets since the last call; missed counts those that were not kept.
func (p *Provider) Captured() (packets []CapturedPacket, missed uint64) {
	if !p.Captures() {
		return nil, 0
	}
	var found [C.CORE_CAPTURED_MAX]C.struct_core_captured
	var more C.uint64_t
	count := C.core_captured(p.c, &found[0], C.CORE_CAPTURED_MAX, &more)
	for i := range found[:count] {
		each := &found[i]
		packets = append(packets, capturedOf(each, p.clock.since(uint64(each.time))))
	}
	return packets, uint64(more)
}

func capturedOf(c *C.struct_core_captured, at time.Duration) CapturedPacket {
	return CapturedPacket{
		Time: at, Step: uint32(c.step), From: gidAddress(c.from), To: gidAddress(c.to),
		QueuePair: uint32(c.destination), Opcode: uint8(c.opcode), Syndrome: uint8(c.syndrome),
		Message: CMMessage(c.attribute), PSN: uint32(c.psn), Length: uint32(c.length),
		FaultResult: cText(c.fault_result[:]), Interface: cText(c._interface[:]), Inbound: bool(c.inbound),
	}
}

// cText is a text up to its 0, or the whole array.
func cText(text []C.char) string {
	end := slices.Index(text, 0)
	if end < 0 {
		end = len(text)
	}
	return C.GoStringN(unsafe.SliceData(text), C.int(end))
}

// gidAddress is the IP address that a GID of RoCE v2 is.
func gidAddress(gid [16]C.uint8_t) netip.Addr {
	var raw [16]byte
	for i, each := range gid {
		raw[i] = byte(each)
	}
	return netip.AddrFrom16(raw).Unmap()
}

// Name is the name that faults use for the packet, such as REQ of the connection manager, or SEND_ONLY. An
// acknowledgement is ACK, RNR_NAK or NAK_PSN_SEQUENCE_ERROR by its syndrome (IBTA 9.7.5.1.2).
func (p *CapturedPacket) Name() string {
	operation := PacketOps(1) << (p.Opcode & 0x1f)
	switch {
	case p.Message != 0:
		return p.Message.String()
	case operation != packetAcknowledge:
		return operation.String()
	case p.Syndrome>>5 == 0:
		return "ACK"
	case p.Syndrome>>5 == 1:
		return "RNR_NAK"
	}
	naks := [...]string{"PSN_SEQUENCE_ERROR", "INVALID_REQUEST", "REMOTE_ACCESS_ERROR", "REMOTE_OPERATIONAL_ERROR"}
	if code := int(p.Syndrome & 0x1f); code < len(naks) {
		return "NAK_" + naks[code]
	}
	return "NAK"
}

const packetAcknowledge PacketOps = 1 << 0x11
