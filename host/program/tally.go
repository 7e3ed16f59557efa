package program

import (
	"fmt"
	"net"
	"sync"

	"golang.org/x/sys/unix"

	"rdmarun/rdmacore"
)

// tally is what the device of one process has counted.  The process counts in memory that it shares with rdmarun, so
// the numbers are known however it ends.
type tally struct {
	mutex  sync.Mutex
	memory rdmacore.Tally
	shared bool // otherwise memory is a copy of Go's
}

// sendTally makes the memory and sends it to a process that has just connected.
func sendTally(conn *net.UnixConn) (*tally, error) {
	file, err := unix.MemfdCreate("rdmarun-tally", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("make memory for its counters: %w", err)
	}
	defer unix.Close(file)
	// The process must not make it shorter, which would be a fault here.
	const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	err = unix.Ftruncate(file, rdmacore.TallySize)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(file), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		return nil, fmt.Errorf("make memory for its counters: %w", err)
	}
	memory, err := unix.Mmap(file, 0, rdmacore.TallySize, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map memory for its counters: %w", err)
	}
	t := &tally{memory: memory, shared: true}
	if _, _, err := conn.WriteMsgUnix(rdmacore.ControlWelcome(), unix.UnixRights(file), nil); err != nil {
		t.close()
		return nil, fmt.Errorf("send memory for its counters: %w", err)
	}
	return t, nil
}

// close unmaps the memory, and keeps what is in it.
func (t *tally) close() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if !t.shared {
		return
	}
	last := rdmacore.NewTally()
	copy(last, t.memory)
	_ = unix.Munmap(t.memory)
	t.memory, t.shared = last, false
}

// addTo adds the counters to sums.
func (t *tally) addTo(sums map[string]uint64, counters []rdmacore.ControlCounter) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for _, counter := range counters {
		if _, has := sums[counter.Name]; has || len(sums) < maxCounters {
			sums[counter.Name] += t.memory.Counter(counter)
		}
	}
}

// applied is what the last rule of that number was applied to.
func (t *tally) applied(rule uint32) int {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return int(t.memory.Applied(rule))
}

// maxCounters bounds the names of counters that are kept: a program may have any.
const maxCounters = 1024
