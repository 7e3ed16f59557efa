package program

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"

	"rdmarun/host/pcapng"
	"rdmarun/host/printable"
	"rdmarun/host/unixsocket"
	"rdmarun/rdmacore"
)

// maxText bounds a text of a process.
const maxText = 192

// Capture has take called for each packet that processes of programs send and receive from now on, until the device is
// closed.  It is called from a goroutine of each process, in the order of that process, and must not keep the packet.
// The interface of the first process has the name of the role, and those of others have the number of the process as
// well.
func (d *Device) Capture(take func(*rdmacore.CapturePacket)) error {
	listener, err := unixsocket.Listen("unix", "capture")
	if err != nil {
		return fmt.Errorf("listen for packets of the program of %s: %w", d.name, err)
	}
	d.capturing, d.capture = listener, take
	d.serving.Go(func() { d.accept(listener, d.takePackets) })
	return nil
}

// takePackets takes the capture of a process until its end.
func (d *Device) takePackets(conn *net.UnixConn, pid int) {
	defer conn.Close()
	d.mutex.Lock()
	interfaces := interfaces{role: d.name}
	if d.captures++; d.captures > 1 {
		interfaces.role = fmt.Sprintf("%s, process %d", d.name, pid)
	}
	d.mutex.Unlock()
	for from := bufio.NewReaderSize(conn, 2*pcapng.Longest); ; {
		block, err := pcapng.Next(from)
		var packet *rdmacore.CapturePacket
		if err == nil {
			packet, err = interfaces.take(block)
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			d.mutex.Lock()
			d.uncaptured = fmt.Errorf("packets of process %d of the program of %s are missing: %w", pid, d.name, err)
			d.mutex.Unlock()
			return
		}
		if packet != nil {
			d.capture(packet)
		}
	}
}

// interfaces are those that a process has named.
type interfaces struct {
	role  string
	named []pcapng.Interface // as the run's capture has them
}

// maxInterfaces bounds how many a process may name: one for each address of its device.
const maxInterfaces = 1 << 10

// take returns the packet of a block; nil: the block has none.
func (i *interfaces) take(block []byte) (*rdmacore.CapturePacket, error) {
	switch pcapng.KindOf(block) {
	case pcapng.KindSection:
		_, err := pcapng.ParseSection(block)
		return nil, err
	case pcapng.KindInterface:
		named, err := pcapng.ParseInterface(block)
		if err == nil && len(i.named) == maxInterfaces {
			err = pcapng.ErrMalformed
		}
		i.add(printable.Brief(named.Name, maxText), printable.Brief(named.Description, maxText))
		return nil, err
	case pcapng.KindStatistics:
		return nil, nil // those here are of what comes here
	case pcapng.KindPacket:
		packet, err := pcapng.ParsePacket(block)
		if err == nil && uint64(packet.Interface) >= uint64(len(i.named)) {
			err = pcapng.ErrMalformed
		}
		if err != nil {
			return nil, err
		}
		captured := &rdmacore.CapturePacket{
			Interface: i.named[packet.Interface].Name, Description: i.named[packet.Interface].Description,
			Time: packet.Time, Bytes: packet.Bytes, Length: packet.Length, Inbound: packet.Inbound,
		}
		if len(packet.Comments) > 0 { // no step is set there, so it is about faults
			captured.FaultResult = printable.Brief(packet.Comments[0], maxText)
		}
		return captured, nil
	}
	return nil, pcapng.ErrMalformed
}

// add adds an interface, by its address and description.  The first has the name of the role alone.
func (i *interfaces) add(address, description string) {
	named := pcapng.Interface{Name: i.role, Description: cmp.Or(description, i.role)}
	if len(i.named) > 0 {
		named.Name += ", " + address
	}
	i.named = append(i.named, named)
}
