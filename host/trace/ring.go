package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The layout of a ring, as rdmacore/trace/ring.h has it.
const (
	magic       = 0x6563617274616d64
	version     = 4
	headerSize  = 4096
	ringSize    = 4 << 20
	tailOffset  = 128
	headOffset  = 256
	lostOffset  = 384
	exitsOffset = 392
	fixedSize   = 72 // of a record, without its words
	maxWords    = 2048
	frames      = 3 // of a site
)

// kind is what a record is about.
type kind uint8

const (
	kindEnter kind = iota + 1
	kindCall
	kindData
	kindPolls
	kindClock
	kindUnseen
	kindImage
	kindFork
)

// Flags of a record.
const (
	flagCommitted = 1
	flagNested    = 2
	flagTruncated = 4
	flagInHandler = 8
	flagContinues = 16
)

// raw is a record as the process wrote it, with its times converted.
type raw struct {
	kind       kind
	flags      uint8
	number     uint16
	thread     uint32
	errno      int32
	start, end int64 // nanoseconds of CLOCK_MONOTONIC
	result     int64
	folded     uint64
	site       [frames]uint64
	words      []uint64
	unfinished bool  // the process died within the call
	ring       *ring // that it was read from; nil for what the library has not written
}

// release gives a record back to its ring, which reads others into it.
func (r *raw) release() {
	if r.ring != nil {
		r.ring.spare = append(r.ring.spare, r)
	}
}

// ring reads the records of one process. The process has the memory as well, and may write anything at any time. So
// each number is read once, and checked before it is used. The memory cannot shrink, because the file is sealed.
type ring struct {
	memory []byte
	data   []byte
	head   uint64
	lost   uint64 // as the process has counted them
	clock  clock
	parent uint32
	spare  []*raw // records that nothing refers to
}

var errDamaged = errors.New("the program has overwritten its ring")

// openRing maps the memory file of a process.
func openRing(file int, table uint32) (*ring, error) {
	seals, err := unix.FcntlInt(uintptr(file), unix.F_GET_SEALS, 0)
	if err != nil || seals&unix.F_SEAL_SHRINK == 0 {
		return nil, errors.New("its ring is no sealed memory")
	}
	var status unix.Stat_t
	if err := unix.Fstat(file, &status); err != nil {
		return nil, fmt.Errorf("its ring: %w", err)
	}
	if status.Size != headerSize+ringSize {
		return nil, fmt.Errorf("its ring has %d bytes", status.Size)
	}
	memory, err := unix.Mmap(file, 0, headerSize+ringSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map its ring: %w", err)
	}
	r := &ring{memory: memory, data: memory[headerSize:]}
	at := binary.NativeEndian
	if at.Uint64(memory) != magic || at.Uint32(memory[8:]) != version || at.Uint32(memory[12:]) != table {
		r.close()
		return nil, errors.New("its library is of another version of rdmarun")
	}
	r.parent = at.Uint32(memory[20:])
	for i := range 2 {
		from := memory[32+16*i:]
		r.clock.add(at.Uint64(from), at.Uint64(from[8:]))
	}
	return r, nil
}

func (r *ring) close() { _ = unix.Munmap(r.memory) }

func (r *ring) word(offset int) *uint64 { return (*uint64)(unsafe.Pointer(&r.memory[offset])) }

// exits reports whether the process has ended by itself, and not by a signal.
func (r *ring) exits() bool { return atomic.LoadUint64(r.word(exitsOffset)) == 1 }

// newlyLost is how many records the process could not write since the last call.
func (r *ring) newlyLost() uint64 {
	now := atomic.LoadUint64(r.word(lostOffset))
	if now <= r.lost || now > 1<<48 {
		return 0
	}
	lost := now - r.lost
	r.lost = now
	return lost
}

// next returns the next record; nil when there is none yet. When the process has ended, a record that it has not
// finished is returned, too. The record is the caller's until it calls release.
func (r *ring) next(ended bool) (*raw, error) {
	tail := atomic.LoadUint64(r.word(tailOffset))
	available := tail - r.head
	if available == 0 {
		return nil, nil
	}
	if available > ringSize || available%8 != 0 {
		return nil, errDamaged
	}
	at := r.head % ringSize
	state := atomic.LoadUint64(r.word(headerSize + int(at)))
	size, flags := uint64(uint32(state)), uint8(state>>40)
	if flags&flagCommitted == 0 && (!ended || state == 0) {
		return nil, nil
	}
	if size < fixedSize || size > available || size%8 != 0 || size > fixedSize+8*maxWords {
		return nil, errDamaged
	}
	record := r.record()
	record.kind, record.flags, record.number = kind(state>>32), flags, uint16(state>>48)
	record.unfinished = flags&flagCommitted == 0
	var fixed [fixedSize / 8]uint64
	at = r.take(at, fixed[:])
	count := int(size-fixedSize) / 8
	record.words = slices.Grow(record.words[:0], count)[:count]
	r.take(at, record.words)
	r.head += size
	atomic.StoreUint64(r.word(headOffset), r.head)

	var pair [8]byte
	get := binary.NativeEndian
	get.PutUint64(pair[:], fixed[1])
	record.thread, record.errno = get.Uint32(pair[:]), int32(get.Uint32(pair[4:]))
	record.result, record.folded = int64(fixed[4]), fixed[5]
	record.site = [frames]uint64(fixed[6:])
	start, end := fixed[2], fixed[3]
	if record.kind == kindClock && count > 0 && !record.unfinished {
		r.clock.add(end, record.words[0])
	}
	record.start, record.end = r.clock.at(start), r.clock.at(end)
	return record, nil
}

// record is one that was given back, or a new one.
func (r *ring) record() *raw {
	last := len(r.spare) - 1
	if last < 0 {
		return &raw{ring: r}
	}
	record := r.spare[last]
	r.spare = r.spare[:last]
	return record
}

// take moves words out of the ring, and returns what is behind them. Zeros are left in their place: the next record
// there has a state of 0 until it is written.
func (r *ring) take(at uint64, words []uint64) (behind uint64) {
	for i := range words {
		word := (*uint64)(unsafe.Pointer(&r.data[at]))
		words[i], *word = *word, 0
		if at += 8; at == ringSize {
			at = 0
		}
	}
	return at
}

// clock converts the ticks of a process to nanoseconds of CLOCK_MONOTONIC, by pairs that it has read together.
type clock struct {
	first, last [2]uint64
	rate        float64 // nanoseconds per tick
}

// leastSpan is the time between two pairs from which on they say how long a tick is.
const leastSpan = 50_000

func (c *clock) add(ticks, nanoseconds uint64) {
	if c.rate == 0 && c.first[1] == 0 {
		c.first, c.last, c.rate = [2]uint64{ticks, nanoseconds}, [2]uint64{ticks, nanoseconds}, 1
		return
	}
	if nanoseconds < c.first[1]+leastSpan || ticks <= c.first[0] || nanoseconds < c.last[1] || nanoseconds > 1<<62 {
		return
	}
	rate := float64(nanoseconds-c.first[1]) / float64(ticks-c.first[0])
	if rate < 1e-3 || rate > 1e3 {
		return // no counter has that
	}
	c.last, c.rate = [2]uint64{ticks, nanoseconds}, rate
}

func (c *clock) at(ticks uint64) int64 {
	if ticks == 0 {
		return 0
	}
	return int64(c.last[1]) + int64(float64(int64(ticks-c.last[0]))*c.rate)
}

// isPending reports whether there is something to read, or that will be there once it is written.
func (r *ring) isPending() bool { return atomic.LoadUint64(r.word(tailOffset)) != r.head }
