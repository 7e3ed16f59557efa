// Package engine is the transport (IBTA chapter 9): the requester and the responder of a queue pair. They take and give
// packets, cut messages into packets and reassemble them, and change the states of the queue pair. The engine does no
// I/O and makes no system call.
//
// # Files
//
// From the top; each calls only those below it.
//
//   - state: both halves enter a state
//   - direct: requests that need neither queue nor packet
//   - responder: executes requests of the peer
//   - assembly: the responder's half of messages that are cut into packets
//   - receive: the receives that messages use
//   - requester: sends the send queue
//   - segment: the requester's half of messages that are cut into packets
//   - ack_delay: how long an acknowledgement waits
//   - credits: receives that acknowledgements announce, by legal choice
//   - target: the shared queue of a request over an extended connection
//   - answer: beginnings of responses, and NAKs
//   - atomic: atomics
//   - request: the packet of a send request
//   - completion: completions of send requests
//   - calls: the functions of all but answer, completion, direct and segment
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
