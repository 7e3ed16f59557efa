// Package objects has what ibv_open_device(3) leads to: contexts, protection domains, memory keys, windows,
// completion queues and their channels, shared receive queues, address handles, multicast groups, and the struct of
// a queue pair.
//
// # Files
//
// From the top; each calls those only that stand below it.
//
//   - cq_extended: ibv_start_poll(3) and its kin
//   - cq_create: completion queues are made, resized and freed
//   - cq_moderate: completion events that wait for more
//   - cq_verbs: these three declared
//   - ah, cq, mr, mw, query, srq: objects of a device, and what is asked of it
//   - attach: queue pairs join groups
//   - device: all of a device
//   - multicast: groups
//   - qp: queue pairs: what their halves keep, and waiting for what is under way
//   - receive_queue: receives, a queue pair's own or shared
//   - parent_domain: domains with allocators of the user
//   - comp_channel, pd: channels of completions, and protection domains
//   - context, mr_table, request: what they are made of
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
