// Package udp is the link of that name: RoCE v2 through the UDP sockets of an ordinary user, to other processes,
// kernels and adapters. Others include udp.h, which creates such a link, and call it through struct soft_link.
//
// # Files
//
// From the top; each calls only those below it.
//
//   - udp: the link is created and destroyed
//   - connect: sockets, routes and windows of queue pairs
//   - blocks: queue pair numbers, in blocks that have a port each
//   - management: messages of the communication manager to and from other hosts
//   - share: processes that share the port for other hosts
//   - progress: which thread receives, and when pending acknowledgements are sent
//   - receive: one system call that receives
//   - gro: whether the kernel coalesces packets
//   - arrival: received packets are checked, captured, and delivered to their queue pairs
//   - acks: pending acknowledgements
//   - send: packets, and bursts of packets of one length
//   - reads: READ responses in parts, with other work in between
//   - forward: received packets of other processes
//   - faults: injected faults of received packets
//   - socket: sockets, each of one address
//   - watch: stopped processes that share the port get no packets; management has its own sockets
//   - owner: users that have the ports
//   - identification: whether the kernel writes IP headers as the ICRC assumes
//   - internal: the structs, and the functions of all files
package udp

// #cgo CFLAGS: -I${SRCDIR}/../.. -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror
import "C"

import (
	"embed"

	_ "rdmarun/rdmacore/provider"
	_ "rdmarun/rdmacore/soft/base"
	_ "rdmarun/rdmacore/soft/capture"
	_ "rdmarun/rdmacore/soft/engine"
	_ "rdmarun/rdmacore/soft/link"
	_ "rdmarun/rdmacore/soft/objects"
	_ "rdmarun/rdmacore/soft/wire"
)

// What is embedded is part of what the build cache compares, so that a change of C is a change of the package.
//
//go:embed *.c *.h
var _ embed.FS
