package check

import (
	"math/bits"
	"slices"

	"rdmarun/host/trace"
)

// span is memory of a process.
type span struct{ address, length uint64 }

// last is the address of the last byte. Lengths come from the program, so a span may leave the address space.
func (s span) last() uint64 {
	if s.address+s.length < s.address {
		return 1<<64 - 1
	}
	return s.address + s.length - 1
}

func (s span) overlaps(other span) bool {
	return s.length > 0 && other.length > 0 && s.address <= other.last() && other.address <= s.last()
}

// within reports whether all of s is in other.
func (s span) within(other span) bool {
	return s.address >= other.address && s.length <= other.length && s.address-other.address <= other.length-s.length
}

// spans finds the outstanding requests that write to some memory. A segment is in the blocks of the smallest power of
// two that it fits in, of which it has two at most.
type spans struct {
	sizes [65]map[uint64][]entry
	used  []int // the sizes of which there were some
}

// maxEmpty bounds the blocks of a size that are kept when they are empty: programs use the same buffers again.
const maxEmpty = 1 << 10

type entry struct {
	segment
	request *request
}

// class is the power of two, and the blocks of that size that a span is in.
func (s span) class() (size int, first, last uint64) {
	size = bits.Len64(s.length - 1)
	return size, s.address >> size, s.last() >> size
}

func (all *spans) add(r *request) {
	for _, s := range r.segments {
		if s.length == 0 {
			continue
		}
		size, block, last := s.class()
		if all.sizes[size] == nil {
			all.sizes[size] = map[uint64][]entry{}
			all.used = append(all.used, size)
		}
		for ; ; block++ {
			all.sizes[size][block] = append(all.sizes[size][block], entry{s, r})
			if block == last {
				break
			}
		}
	}
}

func (all *spans) remove(r *request) {
	for _, s := range r.segments {
		if s.length == 0 {
			continue
		}
		size, block, last := s.class()
		for ; ; block++ {
			blocks := all.sizes[size]
			left := slices.DeleteFunc(blocks[block], func(e entry) bool { return e.request == r })
			if len(left) == 0 && len(blocks) > maxEmpty {
				delete(blocks, block)
			} else {
				blocks[block] = left
			}
			if block == last {
				break
			}
		}
	}
}

// find returns a request that writes to memory of a segment; nil for none. Segments of other regions do not count:
// their addresses may be of another space (ibv_reg_mr_iova(3)).
func (all *spans) find(s segment) *request {
	if s.length == 0 {
		return nil
	}
	search := func(bucket []entry) *request {
		for _, each := range bucket {
			if each.key == s.key && each.overlaps(s.span) {
				return each.request
			}
		}
		return nil
	}
	for _, size := range all.used {
		blocks := all.sizes[size]
		first, last := s.address>>size, s.last()>>size
		if last-first >= uint64(len(blocks)) {
			for _, bucket := range blocks {
				if found := search(bucket); found != nil {
					return found
				}
			}
			continue
		}
		for i := range last - first + 1 {
			if found := search(blocks[first+i]); found != nil {
				return found
			}
		}
	}
	return nil
}

// region is a memory region.
type region struct {
	name, pd string
	span     span // as requests address it: from iova
	memory   span // of the program; empty for other memory
	writable bool
	discards bool // what is written
	gone     bool
	site     trace.Site

	outstanding int // segments of requests that are outstanding
}

// registration is the place where a region was made.
func (r *region) registration() Place { return Place{"ibv_reg_mr of " + r.name, r.site} }
