// Package rdma has the functions of librdmacm(7). Each makes the checks of the kernel's cma.c and ucma.c, and changes
// an id. Others include rdma.h.
//
// # Files
//
// From the top; each calls only those below it.
//
//   - life: a communication manager is created and destroyed
//   - endpoint: rdma_create_ep(3)
//   - get_request: rdma_get_request(3)
//   - timeout: expired timers of ids
//   - connect: rdma_connect(3), rdma_accept(3), rdma_establish(3)
//   - disconnect: rdma_disconnect(3), rdma_reject(3), rdma_notify(3)
//   - id: rdma_create_id(3), rdma_destroy_id(3), rdma_migrate_id(3)
//   - multicast: rdma_join_multicast(3), rdma_leave_multicast(3)
//   - resolve: rdma_bind_addr(3), rdma_resolve_addr(3), rdma_resolve_route(3), rdma_listen(3)
//   - resolve_addrinfo: rdma_resolve_addrinfo(3)
//   - sync: a synchronous id waits for its event
//   - event: events are read and acknowledged
//   - srq: shared receive queues of ids
//   - option: rdma_set_option(3) and ECE
//   - qp: the queue pair of an id
//   - rdma: the functions of all of them
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
