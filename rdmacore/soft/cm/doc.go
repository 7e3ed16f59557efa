// Package cm is the communication manager (IBTA chapter 12) with the ids of rdma_cm(7) that it moves: messages and
// their repeats, port spaces, listeners, paths, multicast joins and what is reported of them.
//
// # Files
//
// From the top; each calls those only that stand below it.
//
//   - removal: the device goes, comes back, or has another address
//   - finish: the end of each operation: what was sent meanwhile is delivered
//   - receive: a message arrives
//   - sidr_receive: one that asks for a service, or answers that
//   - child: a request makes an id
//   - id_free: an id goes
//   - join, sidr: groups of an id; asking for a service
//   - report, send: events that were not read yet; messages, and the states that sending them leads to
//   - delivery, path, ports: the way of messages, routes, and numbers of ports
//   - address, addrinfo, device, peers: addresses, names, the device of an address, and who is connected with whom
//   - channel, id: channels of events, and ids
//   - cm, times: what all of these know
package cm

// #cgo CFLAGS: -I${SRCDIR}/../.. -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror
import "C"

import (
	"embed"

	_ "rdmarun/rdmacore/soft/base"
	_ "rdmarun/rdmacore/soft/objects"
	_ "rdmarun/rdmacore/soft/qp"
	_ "rdmarun/rdmacore/soft/wire"
)

// What is embedded is part of what the build cache compares, so that a change of C is a change of the package.
//
//go:embed *.c *.h
var _ embed.FS
