package capture

import (
	"bufio"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"rdmarun/host/record"
)

// stream is what one host has sent, block by block.
type stream struct {
	host       string
	clock      record.Clock
	from       *bufio.Reader
	interfaces []uint32 // numbers in the file
	body       []byte   // of the packet that comes next
	at         uint64   // its time on the controller's clock
	wrong      error    // why nothing more is read
}

// mostInterfaces bounds how many a host may name: each is longer in the file than in the message.
const mostInterfaces = 1 << 12

// queue are the streams by the times of their next packets.
type queue []*stream

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].at < q[j].at }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(*stream)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// merge writes what hosts have sent, as far as it makes sense.  mu is held.
func (c *gathering) merge(w *writer, application, comment string, clocks map[string]record.Clock) error {
	if err := w.section(application, comment); err != nil {
		return err
	}
	var all []*stream
	var next queue
	numbers := uint32(0)
	for _, host := range slices.Sorted(maps.Keys(c.sources)) {
		source := c.sources[host]
		s := &stream{
			host: host, clock: clocks[host],
			from: bufio.NewReaderSize(io.NewSectionReader(source.spool, 0, source.size), longest),
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
		if err := w.packet(s.body, s.interfaces[binary.LittleEndian.Uint32(s.body)], s.at); errors.Is(err, errStrange) {
			s.wrong = err
		} else if err != nil {
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
func (s *stream) read(w *writer, numbers *uint32) (more bool, err error) {
	for s.wrong == nil {
		block, strange := s.block()
		if strange != nil || block == nil {
			s.wrong = strange
			break
		}
		body := bodyOf(block)
		switch kind := kindOf(block); {
		case kind == kindSection && len(body) >= 4 && binary.LittleEndian.Uint32(body) == byteOrder:
		case kind == kindInterface && len(s.interfaces) < mostInterfaces:
			if err = w.netInterface(body, s.host, s.clock.Within); err == nil {
				s.interfaces = append(s.interfaces, *numbers)
				*numbers++
			}
		case kind == kindPacket && len(body) >= packetFields && s.knows(body):
			s.body, s.at = append(s.body[:0], body...), s.here(timeOf(body))
			return true, nil
		case kind == kindStatistics && len(body) >= statisticsFields && s.knows(body):
			err = w.statistics(body, s.interfaces[binary.LittleEndian.Uint32(body)], s.here(timeOf(body)))
		default:
			s.wrong = errStrange
		}
		if errors.Is(err, errStrange) {
			s.wrong, err = err, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// block is the next block; nil at the end.
func (s *stream) block() ([]byte, error) {
	head, err := s.from.Peek(8)
	if err != nil && len(head) == 0 {
		return nil, nil
	}
	if len(head) < 8 {
		return nil, errStrange
	}
	length := binary.LittleEndian.Uint32(head[4:])
	if length > longest {
		return nil, errStrange
	}
	whole, _ := s.from.Peek(int(length))
	block, err := cut(whole)
	if err != nil || block == nil {
		return nil, errStrange
	}
	_, _ = s.from.Discard(len(block)) // it is there
	return block, nil
}

// knows reports whether the interface of a body was named before.
func (s *stream) knows(body []byte) bool {
	return uint64(binary.LittleEndian.Uint32(body)) < uint64(len(s.interfaces))
}

// here is a time of the host on the clock of the controller.
func (s *stream) here(at uint64) uint64 {
	return uint64(time.Duration(at) - s.clock.Ahead)
}
