// Package cm is the communication manager (IBTA chapter 12) with the ids of rdma_cm(7). It has the messages and their
// repeats, port spaces, listeners, paths, multicast joins, and the events that report them. Others include calls.h.
//
// # Where to look
//
// hosts receives messages of other hosts, arrival those of other processes. receive and sidr_receive act on them, and
// finish delivers messages that were queued meanwhile. send and sidr send messages; held delays them for faults. child
// creates an id for a request; half_open, gate and hosts limit requests. ports finds the listener of a request, peers
// an existing connection. id creates ids, id_free destroys them. device, path, address and neighbour determine where an
// id is. report creates events. network and removal report changes of networks and of the device to ids.
//
// # Files
//
// From the top; each calls only those below it.
//
//   - network: changes of the host's networks
//   - removal: the device is removed and returns, or its hardware address changes; the program ends
//   - hosts: messages of other hosts
//   - arrival: messages of other processes, and their ends
//   - finish: the end of each operation, which delivers its messages
//   - receive: a message is received
//   - sidr_receive: a SIDR REQ or SIDR REP is received
//   - child: ids of requests
//   - id_free: destruction of ids
//   - join: multicast groups of ids
//   - sidr: datagram services
//   - report: unread events
//   - send: messages, and the states after them
//   - locate: the process of an id's peer
//   - half_open: limits of requests that are not connections yet
//   - gate: hosts that have proven that they receive at their address
//   - held: messages that faults delay, reorder or lose
//   - path: path records
//   - ports: port spaces
//   - budget: limits of what is sent to other hosts
//   - delivery: messages go to this process, another one, or another host
//   - neighbour: whether the next hop answers
//   - peers: connections by their remote end
//   - address_ib: addresses of AF_IB
//   - addrinfo: names
//   - device: the device of the ids
//   - address: addresses of all families
//   - channel: event channels
//   - calls: the functions of all of these, in this order
//   - id: the struct of an id, and creation of ids
//   - cm: structs and times that all of them share
package cm

// #cgo CFLAGS: -I${SRCDIR}/../.. -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror
import "C"

import (
	"embed"

	_ "rdmarun/rdmacore/provider"
	_ "rdmarun/rdmacore/soft/base"
	_ "rdmarun/rdmacore/soft/capture"
	_ "rdmarun/rdmacore/soft/ipc"
	_ "rdmarun/rdmacore/soft/objects"
	_ "rdmarun/rdmacore/soft/qp"
	_ "rdmarun/rdmacore/soft/wire"
)

// What is embedded is part of what the build cache compares, so that a change of C is a change of the package.
//
//go:embed *.c *.h
var _ embed.FS
