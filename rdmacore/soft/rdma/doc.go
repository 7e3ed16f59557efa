// Package rdma has the functions of librdmacm(7), one by one: each checks as the kernel's cma.c and ucma.c check, and
// moves an id.
//
// # Files
//
// From the top; each calls only those further down.
//
//   - life: a communication manager is made and ends
//   - endpoint, get_request, timeout: rdma_create_ep(3); rdma_get_request(3); what the timers of ids do
//   - connect, disconnect, id, multicast, resolve, resolve_addrinfo: the functions of their names
//   - sync: a synchronous id waits for its event
//   - event, srq: events are read and acknowledged; shared receive queues of ids
//   - option, qp: rdma_set_option(3) and ECE; the queue pair of an id
//   - rdma: all of them declared
package rdma

// #cgo CFLAGS: -I${SRCDIR}/../.. -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror
import "C"

import (
	"embed"

	_ "rdmarun/rdmacore/provider"
	_ "rdmarun/rdmacore/soft/base"
	_ "rdmarun/rdmacore/soft/cm"
	_ "rdmarun/rdmacore/soft/ipc"
	_ "rdmarun/rdmacore/soft/objects"
	_ "rdmarun/rdmacore/soft/qp"
	_ "rdmarun/rdmacore/soft/wire"
)

// What is embedded is part of what the build cache compares, so that a change of C is a change of the package.
//
//go:embed *.c *.h
var _ embed.FS
