package rdma

import (
	"sync"
	"unsafe"
)

// PD is a protection domain.
type PD struct{ Handle Handle }

// AllocPD allocates a protection domain on an endpoint's device, or with nil on the default device.
func AllocPD(ep *EP) (*PD, error) {
	of := Handle(0)
	if ep != nil {
		of = ep.Handle
	}
	h, err := handle("alloc_pd", abiAllocPD(of))
	if err != nil {
		return nil, err
	}
	return &PD{h}, nil
}

// Dealloc frees the protection domain; EBUSY while it has QPs or memory regions.
func (pd *PD) Dealloc() error { return check("dealloc_pd", abiDeallocPD(pd.Handle)) }

func (pd *PD) handle() Handle {
	if pd == nil {
		return 0
	}
	return pd.Handle
}

// Region is a memory region: Bytes is registered, and stays where it is until Dereg.
type Region struct {
	Handle Handle
	MR
	Bytes []byte
}

// registered has the memory of all regions.  The host writes there also when the guest names it no longer: a receive is
// posted, or a peer knows the key.  The collector must not give it to another object, so it is package state.
var registered struct {
	mu sync.Mutex
	of map[Handle][][]byte
}

// hold keeps the memory of a region from the collector, release lets go of it.
func hold(region Handle, memory ...[]byte) {
	registered.mu.Lock()
	defer registered.mu.Unlock()
	if registered.of == nil {
		registered.of = map[Handle][][]byte{}
	}
	registered.of[region] = memory
}

func held(region Handle) [][]byte {
	registered.mu.Lock()
	defer registered.mu.Unlock()
	return registered.of[region]
}

func release(region Handle) {
	registered.mu.Lock()
	defer registered.mu.Unlock()
	delete(registered.of, region)
}

// RegMR registers memory.  It stays allocated until Dereg, whether or not the guest still refers to it.
func (pd *PD) RegMR(memory []byte, access Access) (*Region, error) {
	region := &Region{Bytes: memory}
	h, err := handle("reg_mr", abiRegMR(pd.Handle, unsafe.Pointer(unsafe.SliceData(memory)),
		uint32(len(memory)), access, &region.MR))
	if err != nil {
		return nil, err
	}
	region.Handle = h
	hold(h, memory)
	return region, nil
}

// RegMRIova registers memory under an address of the guest's choice, by which the peer names its first byte.  Requests
// of the guest itself need a region of RegMR: their SGEs take the guest's own pointers.
func (pd *PD) RegMRIova(memory []byte, iova uint64, access Access) (*Region, error) {
	region := &Region{Bytes: memory}
	h, err := handle("reg_mr_iova", abiRegMRIova(pd.Handle, unsafe.Pointer(unsafe.SliceData(memory)),
		uint32(len(memory)), int64(iova), access, &region.MR))
	if err != nil {
		return nil, err
	}
	region.Handle = h
	hold(h, memory)
	return region, nil
}

// Rereg changes the region while requests may be using it: change.Flags says what.  memory is its new memory with
// ReregTranslation, else nil.  Its keys may be others afterwards.
func (r *Region) Rereg(change MRChange, memory []byte) error {
	change.StructSize = uint32(unsafe.Sizeof(change))
	if memory != nil {
		change.Start, change.Length = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory)))), uint64(len(memory))
		hold(r.Handle, append(held(r.Handle), memory)...)
	}
	var keys MR
	if err := check("rereg_mr", abiReregMR(r.Handle, &change, &keys)); err != nil {
		return err
	}
	r.MR = keys
	if memory != nil {
		r.Bytes = memory
		hold(r.Handle, memory)
	}
	return nil
}

// NewBuffer registers new, zeroed memory.
func (pd *PD) NewBuffer(size int, access Access) (*Region, error) {
	return pd.RegMR(make([]byte, size), access)
}

// Dereg ends the registration; then the collector may free the memory.
func (r *Region) Dereg() error {
	err := check("dereg_mr", abiDeregMR(r.Handle))
	if err == nil {
		release(r.Handle)
	}
	return err
}

// SGE names length bytes of the region from offset in a work request.
func (r *Region) SGE(offset, length int) SGE {
	start := unsafe.Pointer(unsafe.SliceData(r.Bytes[offset:][:length]))
	return SGE{Address: uint64(uintptr(start)), Length: uint32(length), LKey: r.LKey}
}
