package pcapng

import (
	"encoding/binary"
	"io"
)

// Writer writes blocks.
type Writer struct {
	To    io.Writer
	block []byte
}

// Section begins the file.
func (w *Writer) Section(s Section) error {
	w.begin(KindSection)
	w.put32(byteOrder)
	w.put16(1)
	w.put16(0)
	w.putTime(1<<64 - 1) // its length is not known
	w.putText(optionComment, s.Comment)
	w.putText(optionApplication, s.Application)
	return w.end()
}

// Interface adds an interface; the first has the number 0.
func (w *Writer) Interface(i Interface) error {
	w.begin(KindInterface)
	w.put16(linkTypeRaw)
	w.put16(0)
	w.put32(i.SnapLength)
	w.putText(optionName, i.Name)
	w.putText(optionDescription, i.Description)
	w.putOption(optionResolution, []byte{nanoseconds})
	return w.end()
}

// Packet adds a packet.
func (w *Writer) Packet(p Packet) error {
	w.begin(KindPacket)
	w.put32(p.Interface)
	w.putTime(p.Time)
	w.put32(uint32(len(p.Bytes)))
	w.put32(p.Length)
	w.putBytes(p.Bytes)
	direction := byte(outboundFlag)
	if p.Inbound {
		direction = inboundFlag
	}
	w.putOption(optionFlags, []byte{direction, 0, 0, 0})
	for _, comment := range p.Comments {
		w.putText(optionComment, comment)
	}
	return w.end()
}

// Statistics adds what an interface has counted.
func (w *Writer) Statistics(s Statistics) error {
	w.begin(KindStatistics)
	w.put32(s.Interface)
	w.putTime(s.Time)
	w.putOption(optionReceived, binary.LittleEndian.AppendUint64(nil, s.Received))
	w.putOption(optionMissing, binary.LittleEndian.AppendUint64(nil, s.Missing))
	return w.end()
}

// begin begins a block; the caller appends its parts.
func (w *Writer) begin(kind Kind) {
	w.block = binary.LittleEndian.AppendUint32(w.block[:0], uint32(kind))
	w.block = binary.LittleEndian.AppendUint32(w.block, 0)
}

func (w *Writer) put16(value uint16) { w.block = binary.LittleEndian.AppendUint16(w.block, value) }
func (w *Writer) put32(value uint32) { w.block = binary.LittleEndian.AppendUint32(w.block, value) }

// putTime appends 64 bits, the upper half first.
func (w *Writer) putTime(at uint64) {
	w.put32(uint32(at >> 32))
	w.put32(uint32(at))
}

func (w *Writer) putBytes(data []byte) {
	w.block = append(w.block, data...)
	for len(w.block)%4 != 0 {
		w.block = append(w.block, 0)
	}
}

func (w *Writer) putOption(code int, value []byte) {
	w.put16(uint16(code))
	w.put16(uint16(len(value)))
	w.putBytes(value)
}

func (w *Writer) putText(code int, text string) {
	if text != "" {
		w.putOption(code, []byte(text[:min(len(text), 1<<16-1)]))
	}
}

// end ends the options and the block, and writes it.
func (w *Writer) end() error {
	w.putOption(optionEnd, nil)
	length := uint32(len(w.block) + 4)
	binary.LittleEndian.PutUint32(w.block[4:], length)
	w.put32(length)
	_, err := w.To.Write(w.block)
	return err
}
