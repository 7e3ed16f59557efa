package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"rdmarun/host/lab"
)

// Kinds of blocks (draft-ietf-opsawg-pcapng).
const (
	kindSection    = 0x0a0d0d0a
	kindInterface  = 1
	kindStatistics = 5
	kindPacket     = 6
)

// Options of blocks that are passed on.
const (
	optionEnd     = 0
	optionComment = 1
	// In a section.
	optionApplication = 4
	// In an interface.
	optionName, optionDescription, optionResolution = 2, 3, 9
	// In a packet.
	optionFlags = 2
	// In statistics.
	optionReceived, optionMissing = 4, 5
)

const (
	byteOrder   = 0x1a2b3c4d
	linkTypeRaw = 101
	nanoseconds = 9
	// frame is the size of a block without its body, least that of the shortest block.
	frame, least = 12, 12
	// longest bounds a block: a packet of 64 KiB with its comments.
	longest = 80 << 10
	// packetFields, interfaceFields and statisticsFields are of fixed length, before the packet's bytes and the
	// options.
	packetFields, interfaceFields, statisticsFields = 20, 8, 12
)

// errStrange means that bytes are no blocks, as this program writes them.
var errStrange = errors.New("malformed pcapng block")

// cut is the first block of bytes; nil when it is not whole.
func cut(data []byte) (block []byte, err error) {
	if len(data) < 8 {
		return nil, nil
	}
	length := binary.LittleEndian.Uint32(data[4:])
	switch {
	case length < least || length%4 != 0 || length > longest:
		return nil, errStrange
	case int(length) > len(data):
		return nil, nil
	case binary.LittleEndian.Uint32(data[length-4:]) != length:
		return nil, errStrange
	}
	return data[:length], nil
}

func kindOf(block []byte) uint32 { return binary.LittleEndian.Uint32(block) }

// bodyOf is a block without its kind and lengths.
func bodyOf(block []byte) []byte { return block[8 : len(block)-4] }

// eachOption calls f for the options of a block.
func eachOption(data []byte, f func(code int, value []byte)) error {
	for len(data) >= 4 {
		code, length := binary.LittleEndian.Uint16(data), int(binary.LittleEndian.Uint16(data[2:]))
		padded := (length + 3) &^ 3
		if code == optionEnd {
			return nil
		}
		if 4+padded > len(data) {
			return errStrange
		}
		f(int(code), data[4:4+length])
		data = data[4+padded:]
	}
	return nil
}

// writer writes blocks.
type writer struct {
	to    io.Writer
	block []byte
}

// begin begins a block; the caller appends its parts.
func (w *writer) begin(kind uint32) {
	w.block = binary.LittleEndian.AppendUint32(w.block[:0], kind)
	w.block = binary.LittleEndian.AppendUint32(w.block, 0)
}

func (w *writer) put16(value uint16) { w.block = binary.LittleEndian.AppendUint16(w.block, value) }
func (w *writer) put32(value uint32) { w.block = binary.LittleEndian.AppendUint32(w.block, value) }

// putTime appends 64 bits, the upper half first.
func (w *writer) putTime(at uint64) {
	w.put32(uint32(at >> 32))
	w.put32(uint32(at))
}

func (w *writer) putBytes(data []byte) {
	w.block = append(w.block, data...)
	for len(w.block)%4 != 0 {
		w.block = append(w.block, 0)
	}
}

func (w *writer) putOption(code int, value []byte) {
	w.put16(uint16(code))
	w.put16(uint16(len(value)))
	w.putBytes(value)
}

func (w *writer) putText(code int, text string) {
	if text != "" {
		w.putOption(code, []byte(text))
	}
}

// end ends the options and the block, and writes it.
func (w *writer) end() error {
	w.putOption(optionEnd, nil)
	length := uint32(len(w.block) + 4)
	binary.LittleEndian.PutUint32(w.block[4:], length)
	w.put32(length)
	_, err := w.to.Write(w.block)
	return err
}

func (w *writer) section(application, comment string) error {
	w.begin(kindSection)
	w.put32(byteOrder)
	w.put16(1)
	w.put16(0)
	w.putTime(1<<64 - 1) // its length is not known
	w.putText(optionComment, comment)
	w.putText(optionApplication, application)
	return w.end()
}

// netInterface passes on the interface of a host.
func (w *writer) netInterface(body []byte, host string, within time.Duration) error {
	if len(body) < interfaceFields || binary.LittleEndian.Uint16(body) != linkTypeRaw {
		return errStrange
	}
	name, description := host, ""
	err := eachOption(body[interfaceFields:], func(code int, value []byte) {
		switch code {
		case optionName:
			name = host + ": " + lab.Text(string(value))
		case optionDescription:
			description = lab.Text(string(value)) + ", "
		}
	})
	if err != nil {
		return err
	}
	w.begin(kindInterface)
	w.put16(linkTypeRaw)
	w.put16(0)
	w.put32(binary.LittleEndian.Uint32(body[4:]))
	w.putText(optionName, name)
	w.putText(optionDescription, fmt.Sprintf("%stimes +-%.3f ms", description, float64(within)/1e6))
	w.putOption(optionResolution, []byte{nanoseconds})
	return w.end()
}

// packet passes on a packet of an interface that the file has under a number, at its time on the controller's clock.
func (w *writer) packet(body []byte, number uint32, at uint64) error {
	captured := binary.LittleEndian.Uint32(body[12:])
	padded := (uint64(captured) + 3) &^ 3
	if packetFields+padded > uint64(len(body)) {
		return errStrange
	}
	w.begin(kindPacket)
	w.put32(number)
	w.putTime(at)
	w.put32(captured)
	w.put32(binary.LittleEndian.Uint32(body[16:]))
	w.putBytes(body[packetFields : packetFields+captured])
	err := eachOption(body[packetFields+padded:], func(code int, value []byte) {
		switch {
		case code == optionFlags && len(value) == 4:
			w.putOption(code, value)
		case code == optionComment:
			w.putText(code, lab.Text(string(value)))
		}
	})
	return errors.Join(err, w.end())
}

// statistics passes on what an interface has counted.
func (w *writer) statistics(body []byte, number uint32, at uint64) error {
	w.begin(kindStatistics)
	w.put32(number)
	w.putTime(at)
	err := eachOption(body[statisticsFields:], func(code int, value []byte) {
		if (code == optionReceived || code == optionMissing) && len(value) == 8 {
			w.putOption(code, value)
		}
	})
	return errors.Join(err, w.end())
}

// timeOf is when the packet, or the statistics, of a body was.
func timeOf(body []byte) uint64 {
	return uint64(binary.LittleEndian.Uint32(body[4:]))<<32 | uint64(binary.LittleEndian.Uint32(body[8:]))
}
