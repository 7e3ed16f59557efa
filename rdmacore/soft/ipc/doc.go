// Package ipc joins the communication managers of processes of one machine: who has which port, and connections that
// carry messages of connection management.  Its sockets have names without a file (unix(7), abstract), so that no
// privilege, directory or service is needed, and a process that dies leaves none behind.
//
// # Files
//
// From the top; each calls only those further down.
//
//   - life: a process joins its fabric, and leaves it
//   - progress: what other processes send, and who of them connects
//   - peer: connections to other processes
//   - send: messages to them
//   - claim: the names by which ports belong to processes
//   - record, set: what goes over a connection; the sockets that are waited for
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
