package rdmacore

// #include "core/core.h"
import "C"

import (
	"math"
	"syscall"
)

// RawClock reads the device's clock now, in the ticks of a completion's raw time stamp: DeviceAttr.CoreClock
// thousand of them make a second (ibv_query_rt_values_ex(3)).  EOPNOTSUPP on a device that does not show it.
func (d *Device) RawClock() (uint64, error) {
	const op = "ibv_query_rt_values_ex"
	if !d.open() {
		return 0, closed(op, "device")
	}
	var raw C.uint64_t
	if err := check(op, int(C.core_query_rt_values(d.c, &raw))); err != nil {
		return 0, err
	}
	return uint64(raw), nil
}

// Index is the kernel's number of the device; -1 for a device without one, such as soft's
// (ibv_get_device_index(3)).
func (d *Device) Index() int {
	if !d.open() {
		return -1
	}
	return int(C.core_device_index(d.provider.c, d.c))
}

// PKey is the partition key at an index of a port's table, its highest bit telling a full member from a limited
// one (ibv_query_pkey(3)).  ENOENT for a port or an index that there is not.
func (d *Device) PKey(port, index int) (uint16, error) {
	const op = "ibv_query_pkey"
	if err := d.checkPort(op, port); err != nil {
		return 0, err
	}
	if index < 0 || index > math.MaxInt32 {
		return 0, fail(op, syscall.EINVAL, "index %d of the table of partition keys", index)
	}
	var key C.uint16_t
	if err := check(op, int(C.core_query_pkey(d.provider.c, d.c, C.uint8_t(port), C.int(index), &key))); err != nil {
		return 0, err
	}
	return uint16(key), nil
}

// PKeyIndex is the index of a partition key in a port's table (ibv_get_pkey_index(3)).  ENOENT where it is not in
// it, or without such a port.
func (d *Device) PKeyIndex(port int, key uint16) (int, error) {
	const op = "ibv_get_pkey_index"
	if err := d.checkPort(op, port); err != nil {
		return 0, err
	}
	index := int(C.core_get_pkey_index(d.provider.c, d.c, C.uint8_t(port), C.uint16_t(key)))
	if index < 0 {
		return 0, check(op, index)
	}
	return index, nil
}

func (d *Device) checkPort(op string, port int) error {
	if !d.open() {
		return closed(op, "device")
	}
	if port < 0 || port > math.MaxUint8 {
		return fail(op, syscall.EINVAL, "port %d (ports are 1 to 255)", port)
	}
	return nil
}
