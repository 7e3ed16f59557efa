//go:build wasip1

package main

import (
	"fmt"
	"strconv"
)

// The raw ABI, to which anything can be passed.

//go:wasmimport rdma listen
func rawListen(ep, backlog uint32) int32

//go:wasmimport rdma create_event_channel
func rawCreateEventChannel() int32

//go:wasmimport rdma destroy_event_channel
func rawDestroyEventChannel(channel uint32) int32

//go:wasmimport rdma clock_ns
func rawClockNS(now uint32) int32

//go:wasmimport rdma poll_cq
func rawPollCQ(cq, wc, max uint32) int32

//go:wasmimport rdma create_cq
func rawCreateCQ(ep, entries uint32) int32

//go:wasmimport rdma log
func rawLog(level, text, length uint32) int32

const (
	efault = -14
	ebadf  = -9
	einval = -22
)

// abi passes what is wrong and compares the answers.  Its word is a handle of another guest.
func abi(words []string) error {
	foreign, err := strconv.ParseUint(words[0], 0, 32)
	if err != nil {
		return err
	}
	end := memorySize()
	channel := uint32(rawCreateEventChannel())
	rawDestroyEventChannel(channel)
	cq := uint32(rawCreateCQ(0, 4))
	for _, c := range []struct {
		name      string
		got, want int32
	}{
		{"clock_ns(null)", rawClockNS(0), efault},
		{"clock_ns(end)", rawClockNS(end), efault},
		{"clock_ns(end - 4)", rawClockNS(end - 4), efault},
		{"clock_ns(0xfffffff8)", rawClockNS(0xfffffff8), efault},
		{"clock_ns(misaligned)", rawClockNS(end - 12), einval},
		{"log(past the end)", rawLog(1, end-1, 2), efault},
		{"log(wrapping)", rawLog(1, 0xffffffff, 0xffffffff), efault},
		{"poll_cq(more than there is)", rawPollCQ(cq, end-48, 2), efault},
		{"poll_cq(4 Gi)", rawPollCQ(cq, 64, 0xffffffff), efault},
		{"poll_cq(other kind)", rawPollCQ(channel, 64, 1), ebadf},
		{"destroy_event_channel(stale)", rawDestroyEventChannel(channel), ebadf},
		{"destroy_event_channel(foreign)", rawDestroyEventChannel(uint32(foreign)), ebadf},
		{"listen(0)", rawListen(0, 1), ebadf},
		{"listen(garbage)", rawListen(0xffffffff, 1), ebadf},
	} {
		if c.got != c.want {
			return fmt.Errorf("%s is %d, not %d", c.name, c.got, c.want)
		}
	}
	fmt.Println(rawCreateEventChannel()) // left behind, for another guest to try
	return nil
}

// memorySize is the size of linear memory.  A log line of the lowest level shows it, since that only reads: the host
// refuses the first byte outside.
func memorySize() uint32 {
	inside, outside := uint32(1), uint32(1<<32-1)
	for inside+1 < outside {
		middle := inside + (outside-inside)/2
		if rawLog(0, middle, 1) == 0 {
			inside = middle
		} else {
			outside = middle
		}
	}
	return outside
}
