package program

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Netlink of RDMA devices (linux/rdma_netlink.h), as "rdma resource show cm_id" uses it.
const (
	nldevClient     = 5 // RDMA_NL_NLDEV
	nldevGet        = 1 // RDMA_NLDEV_CMD_GET
	nldevGetIDs     = 11
	attributeDevice = 1 // RDMA_NLDEV_ATTR_DEV_INDEX
	attributeState  = 27
	attributePID    = 28
	attributeIDs    = 30 // RDMA_NLDEV_ATTR_RES_CM_ID
	attributeID     = 31
	attributeSource = 33
	// stateListen is RDMA_CM_LISTEN of drivers/infiniband/core/cma_priv.h.
	stateListen = 8
	// nestedType leaves the flags out of the type of an attribute.
	nestedType = 1<<14 - 1
)

const (
	netlinkTime = 5 * time.Second
	// netlinkAnswer is the size of one answer, and maxAnswers bounds them.
	netlinkAnswer = 64 << 10
	maxAnswers    = 1 << 16
)

// kernelListeners are the ids of the kernel's connection manager that these processes listen with.
func kernelListeners(processes []int) (list []Listener, err error) {
	var devices []uint32
	err = dumpDevices(nldevGet, nil, func(attributes []byte) {
		eachAttribute(attributes, func(kind uint16, value []byte) {
			if kind == attributeDevice && len(value) == 4 {
				devices = append(devices, binary.NativeEndian.Uint32(value))
			}
		})
	})
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return nil, nil // a kernel without RDMA
	}
	for _, device := range devices {
		index := binary.NativeEndian.AppendUint16(nil, 8)
		index = binary.NativeEndian.AppendUint16(index, attributeDevice)
		index = binary.NativeEndian.AppendUint32(index, device)
		more := dumpDevices(nldevGetIDs, index, func(attributes []byte) {
			list = append(list, listenersIn(attributes, processes)...)
		})
		if !errors.Is(more, unix.ENODEV) && !errors.Is(more, unix.EINVAL) { // it was removed
			err = errors.Join(err, more)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the connection manager's ids of the kernel: %w", err)
	}
	return list, nil
}

// listenersIn are those in one answer about ids.
func listenersIn(attributes []byte, processes []int) (list []Listener) {
	eachAttribute(attributes, func(kind uint16, ids []byte) {
		if kind != attributeIDs {
			return
		}
		eachAttribute(ids, func(kind uint16, id []byte) {
			if kind != attributeID {
				return
			}
			listens, owned, source := false, false, netip.AddrPort{}
			eachAttribute(id, func(kind uint16, value []byte) {
				switch {
				case kind == attributeState && len(value) == 1:
					listens = value[0] == stateListen
				case kind == attributePID && len(value) == 4:
					owned = slices.Contains(processes, int(binary.NativeEndian.Uint32(value)))
				case kind == attributeSource:
					source = socketAddress(value)
				}
			})
			if listens && owned && source.IsValid() {
				list = append(list, Listener{source, ByCM})
			}
		})
	})
	return list
}

// socketAddress reads a sockaddr_storage.
func socketAddress(value []byte) netip.AddrPort {
	const port4, address4, port6, address6, end6 = 2, 4, 2, 8, 24
	if len(value) < end6 {
		return netip.AddrPort{}
	}
	switch binary.NativeEndian.Uint16(value) {
	case unix.AF_INET:
		address, _ := netip.AddrFromSlice(value[address4 : address4+4])
		return netip.AddrPortFrom(address, binary.BigEndian.Uint16(value[port4:]))
	case unix.AF_INET6:
		address, _ := netip.AddrFromSlice(value[address6:end6])
		return netip.AddrPortFrom(address, binary.BigEndian.Uint16(value[port6:]))
	}
	return netip.AddrPort{}
}

// dumpDevices asks for a list, and calls each with the attributes of each answer.
func dumpDevices(command uint16, attributes []byte, each func(attributes []byte)) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_RDMA)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	limit := unix.NsecToTimeval(netlinkTime.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return err
	}
	request := binary.NativeEndian.AppendUint32(nil, uint32(unix.NLMSG_HDRLEN+len(attributes)))
	request = binary.NativeEndian.AppendUint16(request, nldevClient<<10|command)
	request = binary.NativeEndian.AppendUint16(request, unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	request = append(append(request, make([]byte, 8)...), attributes...)
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, netlinkAnswer)
	for range maxAnswers {
		n, _, err := unix.Recvfrom(fd, answer, 0)
		if err != nil {
			return err
		}
		if done, err := eachMessage(answer[:n], each); done || err != nil {
			return err
		}
	}
	return unix.EBADMSG
}

// eachMessage calls each with the attributes of the messages in one answer, and reports whether it is the last one.
func eachMessage(rest []byte, each func(attributes []byte)) (done bool, err error) {
	for len(rest) >= unix.NLMSG_HDRLEN {
		length, kind := int(binary.NativeEndian.Uint32(rest)), binary.NativeEndian.Uint16(rest[4:])
		if length < unix.NLMSG_HDRLEN || length > len(rest) {
			return false, unix.EBADMSG
		}
		body := rest[unix.NLMSG_HDRLEN:length]
		switch kind {
		case unix.NLMSG_DONE:
			return true, nil
		case unix.NLMSG_ERROR:
			if len(body) < 4 {
				return false, unix.EBADMSG
			}
			if code := int32(binary.NativeEndian.Uint32(body)); code != 0 {
				return false, unix.Errno(-code)
			}
			return true, nil // an acknowledgement
		}
		each(body)
		rest = rest[min((length+3)&^3, len(rest)):]
	}
	return false, nil
}

// eachAttribute calls each with the attributes of a message.
func eachAttribute(rest []byte, each func(kind uint16, value []byte)) {
	const header = 4
	for len(rest) >= header {
		length, kind := int(binary.NativeEndian.Uint16(rest)), binary.NativeEndian.Uint16(rest[2:])&nestedType
		if length < header || length > len(rest) {
			return
		}
		each(kind, rest[header:length])
		rest = rest[min((length+3)&^3, len(rest)):]
	}
}
