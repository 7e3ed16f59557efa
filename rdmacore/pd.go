package rdmacore

// #include "core/core.h"
import "C"

import "syscall"

// PD is a protection domain: a QP reaches only the memory regions of its own.
type PD struct {
	c        *C.struct_ibv_pd
	device   *Device
	borrowed bool // librdmacm's default PD of a device; it goes with the last id on it
}

// AllocPD allocates a protection domain (ibv_alloc_pd(3)).
func (d *Device) AllocPD() (*PD, error) {
	const op = "ibv_alloc_pd"
	if !d.open() {
		return nil, closed(op, "device")
	}
	var c *C.struct_ibv_pd
	if err := check(op, int(C.core_alloc_pd(d.provider.c, d.c, &c))); err != nil {
		return nil, err
	}
	return &PD{c: c, device: d}, nil
}

// Device returns the device that the PD is on.
func (pd *PD) Device() *Device {
	if pd == nil {
		return nil
	}
	return pd.device
}

// Dealloc frees the protection domain (ibv_dealloc_pd(3)).  EBUSY while it has QPs or MRs, EINVAL for
// the default PD of an id, which is not the caller's to free.
func (pd *PD) Dealloc() error {
	const op = "ibv_dealloc_pd"
	if pd == nil || pd.c == nil {
		return closed(op, "PD")
	}
	if pd.borrowed {
		return fail(op, syscall.EINVAL, "this PD belongs to librdmacm and goes with its ids")
	}
	if err := check(op, int(C.core_dealloc_pd(pd.device.provider.c, pd.c))); err != nil {
		return err
	}
	pd.c = nil
	return nil
}
