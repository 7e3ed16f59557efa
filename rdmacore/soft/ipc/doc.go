// Package ipc connects the communication managers of processes of one machine: ports of processes, and connections for
// messages of connection management. Its sockets have names without a file (unix(7), abstract). So it needs no
// privilege, directory or service, and a process that dies leaves no name behind. Others include ipc.h.
//
// # Files
//
// From the top; each calls only those below it.
//
//   - life: joining and leaving a fabric
//   - progress: receives from other processes, and accepts their connections
//   - peer: connections to other processes
//   - send: messages to other processes
//   - claim: the names of ports
//   - record: the format of messages
//   - set: the epoll instance of all sockets
//   - ipc: the structs and functions of all of them
package ipc

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
