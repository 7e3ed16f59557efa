// Package cm is the communication manager (IBTA chapter 12) with the ids of rdma_cm(7) that it moves: messages and
// their repeats, port spaces, listeners, paths, multicast joins and the events that report them.
//
// # Where to look
//
// A message comes in by hosts (other hosts) or arrival (other processes). receive and sidr_receive act on it, and
// finish delivers what was queued meanwhile. A message goes out by send and sidr; delivery holds it back for faults.
// A request becomes an id in child; half_open, gate and hosts bound how many; ports finds its listener, peers a
// connection that exists. An id begins in id and ends in id_free; device, path, address and neighbour say where it is.
// Events are made in report. network and removal tell ids of changes below them.
//
// # Files
//
// From the top; each calls only those further down.
//
//   - network: the networks of the host go and come
//   - removal: the device goes, comes back, or gets another hardware address; the program ends
//   - hosts: messages from other hosts
//   - arrival: messages from other processes, and their deaths
//   - finish: the end of each operation, which delivers what it sent
//   - receive: a message arrives
//   - sidr_receive: a SIDR REQ or SIDR REP arrives
//   - child: ids made by requests
//   - id_free: ids end
//   - join, sidr: multicast groups of ids; datagram services
//   - report, send: events that were not read yet; messages, and the states that sending leads to
//   - locate: the process of an id's peer
//   - half_open: the bounds of requests that are not connections yet
//   - gate: hosts that have shown that they receive what is sent to them
//   - delivery, path, ports: messages on their way, paths, and port spaces
//   - neighbour: whether the next host on the way answers
//   - peers: connections by their remote end
//   - address, addrinfo, device: addresses, names, and the device
//   - channel: event channels
//   - calls: all of these declared, in this order
//   - id: ids begin
//   - cm: the structs and times that all of them share
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
