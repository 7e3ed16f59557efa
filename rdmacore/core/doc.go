// Package core has the functions that Go calls. Each takes and returns flat structs and calls one function of the
// provider table with its real prototype. The result is 0, a count or a negative errno. It checks arguments of guests
// and scenarios before a provider sees them. The only wait is for the reader of a capture.
//
// # Files
//
// From the top; each calls only those below it.
//
//   - memory: protection domains, regions and windows
//   - sync: calls in which librdmacm would wait
//   - build: posting by builders
//   - cq_extended: polling field by field
//   - addrinfo: rdma_getaddrinfo(3)
//   - ah: address handles
//   - channel: event channels and events
//   - cm: rdma_connect(3) and related functions
//   - cq: completion queues and channels
//   - device: devices, ports and GIDs
//   - multicast: multicast groups
//   - option: rdma_set_option(3)
//   - post: ibv_post_send(3), ibv_post_recv(3)
//   - qp: queue pairs
//   - srq: shared receive queues
//   - capture: files of captured packets
//   - open: providers, their clocks and faults
//   - call: what all files share
//   - core: all functions
package core

// #cgo CFLAGS: -I${SRCDIR}/.. -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror
import "C"

import (
	"embed"

	_ "rdmarun/rdmacore/provider"
	_ "rdmarun/rdmacore/soft" // core_open opens it
	_ "rdmarun/rdmacore/soft/capture"
	_ "rdmarun/rdmacore/verbs" // core_open opens it
)

// What is embedded is part of what the build cache compares, so that a change of C is a change of the package.
//
//go:embed *.c *.h
var _ embed.FS
