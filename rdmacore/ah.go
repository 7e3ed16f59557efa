package rdmacore

// #include "core/core.h"
import "C"

import (
	"syscall"
	"unsafe"
)

// GRHLength is how many bytes of a datagram's receive buffer come before its payload.
const GRHLength = 40

// AH is an address handle: where datagrams go.
type AH struct {
	number uint32 // 0 once destroyed
	pd     *PD
}

// CreateAH makes an address handle (ibv_create_ah(3)), such as for the address of a datagram id's peer.
// EINVAL for a port or a GID index that the device has not.
func (pd *PD) CreateAH(attr AHAttr) (*AH, error) {
	const op = "ibv_create_ah"
	if pd == nil || pd.c == nil {
		return nil, closed(op, "PD")
	}
	var c C.struct_ibv_ah_attr
	attr.toC(&c)
	var number C.uint32_t
	if err := check(op, int(C.core_create_ah(pd.device.provider.c, pd.c, &c, &number))); err != nil {
		return nil, err
	}
	return &AH{uint32(number), pd}, nil
}

// CreateAHFromWC makes the handle of the way back to a datagram's sender, from its completion and the first
// GRHLength bytes of its buffer (ibv_create_ah_from_wc(3)).  EINVAL when they hold no header.
func (pd *PD) CreateAHFromWC(wc *WC, grh []byte, port int) (*AH, error) {
	const op = "ibv_create_ah_from_wc"
	if pd == nil || pd.c == nil {
		return nil, closed(op, "PD")
	}
	completion, header, err := replyArguments(op, wc, grh, port)
	if err != nil {
		return nil, err
	}
	var number C.uint32_t
	if err := check(op, int(C.core_create_ah_from_wc(pd.device.provider.c, pd.c, &completion, &header,
		C.uint8_t(port), &number))); err != nil {
		return nil, err
	}
	return &AH{uint32(number), pd}, nil
}

// InitAHFromWC is the way back to a datagram's sender, of which CreateAH makes a handle (ibv_init_ah_from_wc(3)); its
// arguments and errors are those of PD.CreateAHFromWC.
func (d *Device) InitAHFromWC(wc *WC, grh []byte, port int) (AHAttr, error) {
	const op = "ibv_init_ah_from_wc"
	if !d.open() {
		return AHAttr{}, closed(op, "device")
	}
	completion, header, err := replyArguments(op, wc, grh, port)
	if err != nil {
		return AHAttr{}, err
	}
	var c C.struct_ibv_ah_attr
	if err := check(
		op, int(C.core_init_ah_from_wc(d.provider.c, d.c, &completion, &header, C.uint8_t(port), &c)),
	); err != nil {
		return AHAttr{}, err
	}
	return fromCAHAttr(&c), nil
}

// replyArguments copies completion and header: the buffer may change meanwhile, and cgo forbids Go pointers inside.
func replyArguments(op string, wc *WC, grh []byte, port int) (
	completion C.struct_ibv_wc, header C.struct_ibv_grh, err error,
) {
	if len(grh) < GRHLength || port < 0 || port > 255 {
		return completion, header, fail(op, syscall.EINVAL, "%d bytes of header, port %d", len(grh), port)
	}
	return *(*C.struct_ibv_wc)(unsafe.Pointer(wc)), *(*C.struct_ibv_grh)(unsafe.Pointer(unsafe.SliceData(grh))), nil
}

// Number names the handle in SendWR.AH; 0 once it is destroyed.
func (a *AH) Number() uint32 {
	if a == nil {
		return 0
	}
	return a.number
}

// Destroy frees the handle (ibv_destroy_ah(3)).
func (a *AH) Destroy() error {
	const op = "ibv_destroy_ah"
	if a == nil || a.number == 0 {
		return closed(op, "AH")
	}
	if err := check(op, int(C.core_destroy_ah(a.pd.device.provider.c, a.pd.c, C.uint32_t(a.number)))); err != nil {
		return err
	}
	a.number = 0
	return nil
}
