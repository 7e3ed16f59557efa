package guest

import (
	"rdmarun/hostfuncs"
	"rdmarun/rdmacore"
)

// pageSize is that of WebAssembly.
const pageSize = 64 << 10

// linearMemory is a guest's memory: one reservation of all it may ever have, of which wazero sees what
// the guest has grown to.  It belongs to one instantiation.
type linearMemory struct {
	budget   *hostfuncs.Budget
	size     uint64 // charged to it
	instance *hostfuncs.Instance
	region   *rdmacore.Memory // holds a reference for wazero until Free
	held     *rdmacore.Memory // holds a reference for the guest until release
	err      error            // why there is no reservation
}

// allocate makes the reservation; wazero calls it while it instantiates the module.
func (m *linearMemory) allocate(maximum uint64) {
	// A memory that may never have a page still has an address.
	m.region, m.err = rdmacore.NewMemory(int(max(min(maximum, uint64(m.budget.Limits().Memory)/pageSize*pageSize), pageSize)))
	if m.err != nil {
		return
	}
	m.region.Retain()
	m.held = m.region
}

// Reallocate gives the guest the first size bytes; nil when that is more than it may have, which the
// guest sees as a memory.grow that fails.
func (m *linearMemory) Reallocate(size uint64) []byte {
	if m.region == nil || size > uint64(m.region.Size()) ||
		m.budget.Charge(hostfuncs.Cost{Memory: int64(size - m.size)}) != nil {
		return nil
	}
	m.size = size
	m.instance.SetMemory(m.region, int(size))
	return m.region.Bytes()[:size:m.region.Size()]
}

// Free drops wazero's reference.  wazero calls it when the module is closed, perhaps more than once.
func (m *linearMemory) Free() {
	m.region.Release()
	m.region = nil
}

// release drops the guest's reference, and wazero's if it never came to Free it.
func (m *linearMemory) release() {
	m.Free()
	m.held.Release()
	m.held = nil
}
