package rdmacore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// blocks are the bodies of the blocks of a pcapng file, by their kinds in the order of the file.
func blocks(t *testing.T, path string) (kinds []uint32, bodies [][]byte) {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for len(file) > 0 {
		if len(file) < 12 {
			t.Fatalf("%d bytes are left behind the last block", len(file))
		}
		kind, length := binary.NativeEndian.Uint32(file), binary.NativeEndian.Uint32(file[4:])
		if length%4 != 0 || int(length) > len(file) || binary.NativeEndian.Uint32(file[length-4:]) != length {
			t.Fatalf("block %d of kind %#x has a wrong length", len(kinds), kind)
		}
		kinds, bodies = append(kinds, kind), append(bodies, file[8:length-4])
		file = file[length:]
	}
	return kinds, bodies
}

// TestCapture connects two ends on a captured provider and reads the file, and the notes of its packets.
func TestCapture(t *testing.T) {
	path := filepath.Join(t.TempDir(), "capture.pcapng")
	capture, err := CreateCapture(path, CaptureOptions{Application: "test"})
	if err != nil {
		t.Fatal(err)
	}
	provider, err := Open("soft", WithCapture(capture, "a case"))
	if err != nil {
		t.Fatal(err)
	}
	if !provider.Captures() {
		t.Error("the provider does not capture")
	}
	address := here(t, 0).Addr()
	provider.CaptureName(address, "both ends")
	provider.CaptureStep(address, 3, strings.Repeat("ü", 200)) // longer than a step may be, and cut before a character
	t.Run("connection", func(t *testing.T) {
		client, server := newSide(t, provider), newSide(t, provider)
		listener := listen(t, server, &usualQP)
		request(t, client, listener, usualQP, &usualParam)
		server.id = expect(t, listener, EventConnectRequest, 0).ID
		must(t, server.id.Accept(&usualParam))
		expect(t, client.id, EventEstablished, 0)
		expect(t, server.id, EventEstablished, 0)
	})
	packets, missed := provider.Captured()
	must(t, provider.Close())
	totals, err := capture.Close()
	if err != nil || totals.Missing != 0 || totals.Packets != uint64(len(packets)) || len(packets) < 5 || missed != 0 {
		t.Fatalf("%+v %v; %d packets were noted, %d missed", totals, err, len(packets), missed)
	}
	first := packets[0]
	if first.Name() != "REQ" || first.From != address || first.To != address || first.QueuePair != 1 ||
		first.Step != 3 || first.Time <= 0 {
		t.Errorf("the first packet is %s: %+v", first.Name(), first)
	}
	kinds, bodies := blocks(t, path)
	var found uint64
	for i, kind := range kinds {
		switch kind {
		case 1:
			if !strings.Contains(string(bodies[i]), "both ends") ||
				!strings.Contains(string(bodies[i]), address.String()+", a case") {
				t.Errorf("the interface says %q", bodies[i])
			}
		case 6:
			found++
		}
	}
	comment := string(bodies[2])
	if kinds[0] != 0x0a0d0d0a || kinds[1] != 1 || kinds[2] != 6 ||
		!strings.Contains(comment, strings.Repeat("ü", 95)) || strings.Contains(comment, strings.Repeat("ü", 96)) {
		t.Errorf("blocks %#x begin the file; the first packet is %q", kinds[:3], comment)
	}
	if kinds[len(kinds)-1] != 5 || found != totals.Packets {
		t.Errorf(
			"%d packets in the file, %d counted; the last block is of kind %d", found, totals.Packets,
			kinds[len(kinds)-1],
		)
	}
}

// TestCaptureFails: what cannot be written is an error with the file's name, and no provider but soft shows its
// packets.
func TestCaptureFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "no", "folder")
	if _, err := CreateCapture(path, CaptureOptions{}); !errors.Is(err, syscall.ENOENT) ||
		!strings.Contains(err.Error(), path) {
		t.Error(err)
	}
	capture, err := CreateCapture("/dev/full", CaptureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open("verbs", WithCapture(capture, "")); !errors.Is(err, syscall.EOPNOTSUPP) {
		t.Error(err)
	}
	if _, err := capture.Close(); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "/dev/full") {
		t.Error(err)
	}
	if _, err := capture.Close(); err == nil {
		t.Error("closed twice")
	}
}

// TestCaptureAdd: packets of another process are in the file as they were, and only those that are RoCE are noted.
func TestCaptureAdd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "capture.pcapng")
	capture, err := CreateCapture(path, CaptureOptions{SnapLength: 1000})
	if err != nil {
		t.Fatal(err)
	}
	provider, err := Open("soft", WithCapture(capture, "a case"))
	if err != nil {
		t.Fatal(err)
	}
	provider.CaptureStep(netip.Addr{}, 7, "the step")
	// IPv4, UDP and a SEND_ONLY without payload to queue pair 5.
	roce := make([]byte, 20+8+12+4)
	roce[0], roce[3], roce[9], roce[12+3], roce[16+3] = 0x45, byte(len(roce)), 17, 1, 2
	roce[28], roce[28+7] = 4, 5
	packet := func(name string, bytes []byte) *CapturePacket {
		return &CapturePacket{
			Interface: name, Description: "elsewhere", Time: 12, Bytes: bytes, Length: 70000, Inbound: true,
			FaultResult: strings.Repeat("x", 500),
		}
	}
	noise := make([]byte, 65535)
	for i := range noise {
		noise[i] = byte(i * 7)
	}
	for _, first := range []byte{0x45, 0x46, 0x60, 0x00, 0xff} {
		noise[0] = first
		for length := range 100 {
			provider.CaptureAdd(packet("server", noise[:length]))
		}
		provider.CaptureAdd(packet("server", noise))
	}
	provider.CaptureAdd(packet("client", roce))
	for i := range 300 { // more interfaces than there may be
		provider.CaptureAdd(packet(fmt.Sprint("interface ", i), roce[:40]))
	}
	noted, missed := provider.Captured()
	if len(noted) != 1 || missed != 0 {
		t.Fatalf("%d packets were noted, %d not", len(noted), missed)
	}
	one := noted[0]
	if one.Name() != "SEND_ONLY" || one.QueuePair != 5 || one.Step != 7 || one.Interface != "client" || !one.Inbound ||
		one.From.String() != "0.0.0.1" || len(one.FaultResult) == 0 {
		t.Errorf("%+v", one)
	}
	must(t, provider.Close())
	totals, err := capture.Close()
	if err != nil || totals.Packets != 5*101+1+300 || totals.Missing != 0 {
		t.Errorf("%+v, %v", totals, err)
	}
	kinds, bodies := blocks(t, path)
	count := map[uint32]int{}
	for i, kind := range kinds {
		count[kind]++
		if kind == 6 && binary.NativeEndian.Uint32(bodies[i][12:]) > 1000 {
			t.Errorf("%d bytes of a packet are kept", binary.NativeEndian.Uint32(bodies[i][12:]))
		}
	}
	if count[1] != 256 || count[6] != 5*101+1+300 {
		t.Errorf("%d interfaces and %d packets", count[1], count[6])
	}
}
