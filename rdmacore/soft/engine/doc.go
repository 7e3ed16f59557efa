// Package engine is the transport (IBTA chapter 9): the requester and the responder of a queue pair, which give and
// take packets, cut messages into packets and put them together, and move the queue pair between its states.  It does
// no I/O and makes no system call.
//
// # Files
//
// From the top; each calls only those further down.
//
//   - state: entering a state
//   - responder: executes the requests of the peer
//   - assembly: the responder's half of messages that are cut into packets
//   - receive, requester: receives that messages use; the send queue is worked off
//   - segment: the requester's half of messages that are cut into packets
//   - ack_delay: how long an acknowledgement waits
//   - target: the shared queue of a request over an extended connection
//   - answer, atomic, request: responses, atomics, and the packet of a send request
//   - calls: all but answer and segment declared
package engine

// #cgo CFLAGS: -I${SRCDIR}/../.. -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror
import "C"

import (
	"embed"

	_ "rdmarun/rdmacore/provider"
	_ "rdmarun/rdmacore/soft/base"
	_ "rdmarun/rdmacore/soft/capture"
	_ "rdmarun/rdmacore/soft/objects"
	_ "rdmarun/rdmacore/soft/wire"
)

// What is embedded is part of what the build cache compares, so that a change of C is a change of the package.
//
//go:embed *.c *.h
var _ embed.FS
