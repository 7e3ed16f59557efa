// Package link carries packets between queue pairs: local, within the process and at the speed of memory; and packets,
// a network whose packets take time and can be lost, duplicated and reordered. The link udp is a package of its own.
// transmit takes requests from a send queue and picks the link.
//
// # Files
//
// From the top; each calls only those further down.
//
//   - packets: the network that can lose, duplicate and reorder
//   - receive: a datagram arrives
//   - transmit: a send queue is sent, on the link that its queue pair has
//   - local: from queue pair to queue pair
//   - send: into a packet of a link, and what faults may say of packets
//   - calls: all but packets declared
package link

// #cgo CFLAGS: -I${SRCDIR}/../.. -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror
import "C"

import (
	"embed"

	_ "rdmarun/rdmacore/provider"
	_ "rdmarun/rdmacore/soft/base"
	_ "rdmarun/rdmacore/soft/capture"
	_ "rdmarun/rdmacore/soft/engine"
	_ "rdmarun/rdmacore/soft/objects"
	_ "rdmarun/rdmacore/soft/wire"
)

// What is embedded is part of what the build cache compares, so that a change of C is a change of the package.
//
//go:embed *.c *.h
var _ embed.FS
