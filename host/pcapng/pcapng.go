// Package pcapng reads and writes blocks of pcapng files (draft-ietf-opsawg-pcapng), as soft captures them.  Packets
// begin with an IP header, and times are nanoseconds since 1970.  What it reads is hostile.
package pcapng

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

// Kind is a kind of block.
type Kind uint32

// The kinds that soft writes.
const (
	KindSection    Kind = 0x0a0d0d0a
	KindInterface  Kind = 1
	KindStatistics Kind = 5
	KindPacket     Kind = 6
)

// Options of blocks.
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
	least       = 12 // the size of the shortest block, which has no body
	// Fields of fixed length, before the packet's bytes and the options.
	sectionFields, packetFields, interfaceFields, statisticsFields = 16, 20, 8, 12
	// inboundFlag and outboundFlag are directions in the flags of a packet.
	inboundFlag, outboundFlag = 1, 2
)

// Longest is the size of the longest block: a packet of 64 KiB with its comments.
const Longest = 80 << 10

// ErrMalformed means that bytes are not blocks as soft writes them.
var ErrMalformed = errors.New("malformed pcapng block")

// Cut returns the first block of data; nil when it is not whole.
func Cut(data []byte) (block []byte, err error) {
	if len(data) < 8 {
		return nil, nil
	}
	length := binary.LittleEndian.Uint32(data[4:])
	switch {
	case length < least || length%4 != 0 || length > Longest:
		return nil, ErrMalformed
	case int(length) > len(data):
		return nil, nil
	case binary.LittleEndian.Uint32(data[length-4:]) != length:
		return nil, ErrMalformed
	}
	return data[:length], nil
}

// Next reads a block, which is valid until the next call; io.EOF at the end.  The reader's buffer has at least Longest
// bytes.
func Next(from *bufio.Reader) (block []byte, err error) {
	head, err := from.Peek(8)
	if err != nil && len(head) == 0 {
		return nil, err
	}
	if len(head) < 8 {
		return nil, ErrMalformed
	}
	length := binary.LittleEndian.Uint32(head[4:])
	if length > Longest {
		return nil, ErrMalformed
	}
	whole, err := from.Peek(int(length))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if block, err = Cut(whole); err == nil && block == nil {
		err = ErrMalformed
	}
	if err == nil {
		_, err = from.Discard(len(block))
	}
	return block, err
}

// KindOf is the kind of a block that Cut or Next returned.
func KindOf(block []byte) Kind { return Kind(binary.LittleEndian.Uint32(block)) }

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
			return ErrMalformed
		}
		f(int(code), data[4:4+length])
		data = data[4+padded:]
	}
	return nil
}

// Section is the beginning of a file.
type Section struct {
	Application, Comment string // "": none
}

// ParseSection reads a block of KindSection, in the byte order of this machine.
func ParseSection(block []byte) (s Section, err error) {
	body := bodyOf(block)
	if len(body) < sectionFields || binary.LittleEndian.Uint32(body) != byteOrder {
		return s, ErrMalformed
	}
	err = eachOption(body[sectionFields:], func(code int, value []byte) {
		switch code {
		case optionApplication:
			s.Application = string(value)
		case optionComment:
			s.Comment = string(value)
		}
	})
	return s, err
}

// Interface is an interface of a file.
type Interface struct {
	Name, Description string
	SnapLength        uint32 // 0: whole packets
}

// ParseInterface reads a block of KindInterface.
func ParseInterface(block []byte) (i Interface, err error) {
	body := bodyOf(block)
	if len(body) < interfaceFields || binary.LittleEndian.Uint16(body) != linkTypeRaw {
		return i, ErrMalformed
	}
	i.SnapLength = binary.LittleEndian.Uint32(body[4:])
	err = eachOption(body[interfaceFields:], func(code int, value []byte) {
		switch code {
		case optionName:
			i.Name = string(value)
		case optionDescription:
			i.Description = string(value)
		}
	})
	return i, err
}

// Packet is a packet of a file.
type Packet struct {
	Interface uint32 // its number, in the order of the file
	Time      uint64
	Bytes     []byte // those that the file has
	Length    uint32 // of the packet
	Inbound   bool   // it came to the interface; otherwise it left it
	Comments  []string
}

// ParsePacket reads a block of KindPacket, and shares its bytes.
func ParsePacket(block []byte) (p Packet, err error) {
	body := bodyOf(block)
	if len(body) < packetFields {
		return p, ErrMalformed
	}
	captured := binary.LittleEndian.Uint32(body[12:])
	padded := (uint64(captured) + 3) &^ 3
	if packetFields+padded > uint64(len(body)) {
		return p, ErrMalformed
	}
	p = Packet{
		Interface: binary.LittleEndian.Uint32(body), Time: timeOf(body), Length: binary.LittleEndian.Uint32(body[16:]),
		Bytes: body[packetFields : packetFields+captured],
	}
	err = eachOption(body[packetFields+padded:], func(code int, value []byte) {
		switch {
		case code == optionFlags && len(value) == 4:
			p.Inbound = value[0]&3 == inboundFlag
		case code == optionComment:
			p.Comments = append(p.Comments, string(value))
		}
	})
	return p, err
}

// PacketTime is the time of a block of KindPacket.
func PacketTime(block []byte) (at uint64, err error) {
	body := bodyOf(block)
	if len(body) < packetFields {
		return 0, ErrMalformed
	}
	return timeOf(body), nil
}

// Statistics is what an interface has counted.
type Statistics struct {
	Interface         uint32 // its number, in the order of the file
	Time              uint64
	Received, Missing uint64 // packets, and those of them that the file lacks
}

// ParseStatistics reads a block of KindStatistics.
func ParseStatistics(block []byte) (s Statistics, err error) {
	body := bodyOf(block)
	if len(body) < statisticsFields {
		return s, ErrMalformed
	}
	s.Interface, s.Time = binary.LittleEndian.Uint32(body), timeOf(body)
	err = eachOption(body[statisticsFields:], func(code int, value []byte) {
		switch {
		case len(value) != 8:
		case code == optionReceived:
			s.Received = binary.LittleEndian.Uint64(value)
		case code == optionMissing:
			s.Missing = binary.LittleEndian.Uint64(value)
		}
	})
	return s, err
}

// timeOf is when the packet, or the statistics, of a body was.
func timeOf(body []byte) uint64 {
	return uint64(binary.LittleEndian.Uint32(body[4:]))<<32 | uint64(binary.LittleEndian.Uint32(body[8:]))
}
