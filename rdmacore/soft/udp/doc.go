// Package udp is the link of that name: RoCE v2 through the UDP sockets of an ordinary user, to other processes,
// kernels and adapters. Others include udp.h, which makes such a link, and call it through struct soft_link.
//
// # Files
//
// From the top; each calls only those further down.
//
//   - udp: a link is made and ends; sockets for the numbers of queue pairs
//   - management: the communication manager's messages to other hosts
//   - share: processes that have the port of other hosts together
//   - progress: who takes packets from the kernel, and when pending acknowledgements are sent
//   - receive, send: what a system call brings; packets of one length leave together
//   - reads: an answer to a READ goes out in parts, with other work between them
//   - forward: packets that came to the wrong process
//   - faults: what comes from elsewhere is lost, delayed and duplicated here
//   - socket: sockets, each of one address
//   - watch: of processes that share the port, those that are stopped get nothing; management has sockets of its own
//   - owner: who else has the port of other hosts
//   - identification: whether the kernel writes IP headers as the ICRC has them
//   - internal: the structs, and the calls of all files
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
