package capture

import (
	"bufio"
	"container/heap"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"rdmarun/host/lab"
	"rdmarun/host/pcapng"
	"rdmarun/host/record"
)

// stream is what one host has sent, block by block.
type stream struct {
	host       string
	clock      record.Clock
	from       *bufio.Reader
	interfaces []uint32      // numbers in the file
	packet     pcapng.Packet // the next one, as it is in the file; its bytes are valid until the next read
	wrong      error         // why nothing more is read
}

// maxInterfaces bounds how many a host may name: each is longer in the file than in the message.
const maxInterfaces = 1 << 12

// queue are the streams by the times of their next packets.
type queue []*stream

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].packet.Time < q[j].packet.Time }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(*stream)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// merge writes what hosts have sent, as far as it makes sense.  mu is held.
func (c *gathering) merge(w *pcapng.Writer, application, comment string, clocks map[string]record.Clock) error {
	if err := w.Section(pcapng.Section{Application: application, Comment: comment}); err != nil {
		return err
	}
	var all []*stream
	var next queue
	numbers := uint32(0)
	for _, host := range slices.Sorted(maps.Keys(c.sources)) {
		source := c.sources[host]
		s := &stream{
			host: host, clock: clocks[host],
			from: bufio.NewReaderSize(io.NewSectionReader(source.spool, 0, source.size), pcapng.Longest),
		}
		all = append(all, s)
		if more, err := s.read(w, &numbers); err != nil {
			return err
		} else if more {
			next = append(next, s)
		}
	}
	heap.Init(&next)
	for len(next) > 0 {
		s := next[0]
		if err := w.Packet(s.packet); err != nil {
			return err
		}
		if more, err := s.read(w, &numbers); err != nil {
			return err
		} else if more {
			heap.Fix(&next, 0)
		} else {
			heap.Pop(&next)
		}
	}
	for _, s := range all {
		if s.wrong != nil {
			c.sources[s.host].wrong = s.wrong.Error()
		}
	}
	return nil
}

// lacks is what is missing, a sentence for each host.  mu is held.
func (c *gathering) lacks() (lacks []string) {
	for _, host := range slices.Sorted(maps.Keys(c.sources)) {
		if lack := c.sources[host].lack(c.wanted.Most); lack != "" {
			lacks = append(lacks, fmt.Sprintf("host %s: %s", host, lack))
		}
	}
	return lacks
}

// read reads up to the next packet, and passes on what comes before it; false at the end.  The error is that of
// writing.
func (s *stream) read(w *pcapng.Writer, numbers *uint32) (more bool, err error) {
	for {
		var block []byte
		if block, s.wrong = pcapng.Next(s.from); errors.Is(s.wrong, io.EOF) {
			s.wrong = nil
			return false, nil
		}
		if s.wrong == nil {
			more, err = s.pass(block, w, numbers)
		}
		if s.wrong != nil || more || err != nil {
			return more, err
		}
	}
}

// pass passes on a block, or keeps it as the next packet.  The error is that of writing; wrong is set when the block
// makes no sense.
func (s *stream) pass(block []byte, w *pcapng.Writer, numbers *uint32) (packet bool, err error) {
	switch kind := pcapng.KindOf(block); {
	case kind == pcapng.KindSection:
		_, s.wrong = pcapng.ParseSection(block)
	case kind == pcapng.KindInterface && len(s.interfaces) < maxInterfaces:
		var named pcapng.Interface
		if named, s.wrong = pcapng.ParseInterface(block); s.wrong != nil {
			return false, nil
		}
		s.interfaces = append(s.interfaces, *numbers)
		*numbers++
		return false, w.Interface(s.nameHere(named))
	case kind == pcapng.KindPacket:
		s.packet, s.wrong = pcapng.ParsePacket(block)
		if s.packet.Interface, packet = s.number(s.packet.Interface); packet {
			s.packet.Time = s.here(s.packet.Time)
			for i, comment := range s.packet.Comments {
				s.packet.Comments[i] = lab.Text(comment)
			}
		}
		return packet, nil
	case kind == pcapng.KindStatistics:
		var counted pcapng.Statistics
		counted, s.wrong = pcapng.ParseStatistics(block)
		if number, known := s.number(counted.Interface); known {
			counted.Interface, counted.Time = number, s.here(counted.Time)
			return false, w.Statistics(counted)
		}
	default:
		s.wrong = pcapng.ErrMalformed
	}
	return false, nil
}

// number is that of an interface in the file; known is false, and wrong set, where the host has not named it before.
func (s *stream) number(theirs uint32) (ours uint32, known bool) {
	if s.wrong != nil || uint64(theirs) >= uint64(len(s.interfaces)) {
		s.wrong = pcapng.ErrMalformed
		return 0, false
	}
	return s.interfaces[theirs], true
}

// nameHere is an interface of the host as the file has it.
func (s *stream) nameHere(i pcapng.Interface) pcapng.Interface {
	name, description := s.host, ""
	if i.Name != "" {
		name += ": " + lab.Text(i.Name)
	}
	if i.Description != "" {
		description = lab.Text(i.Description) + ", "
	}
	i.Name, i.Description = name, fmt.Sprintf("%stimes +-%.3f ms", description, float64(s.clock.Within)/1e6)
	return i
}

// here is a time of the host on the clock of the controller.
func (s *stream) here(at uint64) uint64 {
	return uint64(time.Duration(at) - s.clock.Ahead)
}
