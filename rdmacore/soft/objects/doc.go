// Package objects has the objects of ibv_open_device(3). They are contexts, protection domains, memory keys and
// windows, completion queues and their channels, shared receive queues, address handles and multicast groups. The
// struct of a queue pair is here, too. Each object has a header; verbs.h has the verbs of the others.
//
// # Files
//
// From the top; each calls only those below it.
//
//   - cq_extended: ibv_start_poll(3) and related verbs
//   - cq_create: completion queues are created, resized and destroyed
//   - cq_moderate: one event for several completions
//   - verbs: the verbs of objects that have no header of their own
//   - advise: makes on-demand memory present before it is used
//   - device_memory: memory of the device
//   - srq: shared receive queues
//   - ah: address handles
//   - cq: polling, events, and legal choices: completions that are late or in another order
//   - mr: memory regions
//   - mw: memory windows
//   - query: device attributes
//   - xrc: XRC domains
//   - comp_channel: completion channels
//   - counters: counters of a device
//   - late_writes: WRITEs that are not visible yet
//   - device: a device and its tables
//   - gid: the GID table of a device
//   - multicast: multicast groups
//   - host_address: addresses, routes and MTUs, asked from the kernel
//   - qp: the struct of a queue pair, and waiting for its data transfers
//   - receive_queue: posted receives of a queue pair or a shared queue
//   - parent_domain: protection domains with allocators of the user
//   - pd: protection domains
//   - context: an open device and its async events
//   - mr_table: memory keys
//   - request: send requests in a queue
//   - on_demand: on-demand memory, and null memory
package objects

// #cgo CFLAGS: -I${SRCDIR}/../.. -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror
import "C"

import (
	"embed"

	_ "rdmarun/rdmacore/provider"
	_ "rdmarun/rdmacore/soft/base"
	_ "rdmarun/rdmacore/soft/wire"
)

// What is embedded is part of what the build cache compares, so that a change of C is a change of the package.
//
//go:embed *.c *.h
var _ embed.FS
