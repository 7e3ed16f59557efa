// Package objects has what ibv_open_device(3) leads to: contexts, protection domains, memory keys, windows,
// completion queues and their channels, shared receive queues, address handles, multicast groups, and the struct of
// a queue pair.
//
// # Files
//
// From the top; each calls only those further down.
//
//   - cq_extended: ibv_start_poll(3) and its kin
//   - cq_create: completion queues are created, resized and destroyed
//   - cq_moderate: one event for several completions
//   - verbs: the verbs of objects that have no header of their own
//   - advise, device_memory, srq: memory is looked for before it is used, and the device's own; shared receive queues
//   - ah, cq, mr, mw, query, xrc: address handles, polling, regions, windows, device attributes, XRC domains
//   - counters: what a device counts
//   - device: a device and its tables
//   - gid, multicast: the addresses of the host; multicast groups
//   - qp: the struct of a queue pair, and waiting for its data transfers
//   - receive_queue: receives that are posted, to a queue pair or a shared queue
//   - parent_domain: protection domains with allocators of the user
//   - comp_channel, pd: completion channels, and protection domains
//   - context, mr_table, request: an open device and its async events, memory keys, and send requests in a queue
//   - on_demand: memory that comes and goes, and memory that is none
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
