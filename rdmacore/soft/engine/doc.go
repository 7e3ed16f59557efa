// Package engine is the transport (IBTA chapter 9): requester and responder of a queue pair, which take and give
// packets, cut messages into packets and put them together, and move the queue pair between its states. It does no
// I/O and makes no system call.
//
// # Files
//
// From the top; each calls those only that stand below it.
//
//   - state: from state to state
//   - responder: what the peer asks is executed
//   - assembly: messages of several packets, as the responder has them
//   - receive, requester: what becomes of a receive; the send queue is worked off
//   - segment: messages of several packets, as the requester has them
//   - answer, atomic, request: answers, atomics, and the packet of a request
package engine

// #cgo CFLAGS: -I${SRCDIR}/../.. -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror
import "C"

import (
	"embed"

	_ "rdmarun/rdmacore/provider"
	_ "rdmarun/rdmacore/soft/base"
	_ "rdmarun/rdmacore/soft/objects"
	_ "rdmarun/rdmacore/soft/wire"
)

// What is embedded is part of what the build cache compares, so that a change of C is a change of the package.
//
//go:embed *.c *.h
var _ embed.FS
