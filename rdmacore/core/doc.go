// Package core is what Go calls: each function takes and gives flat structs, calls one function of the provider
// table with its real prototype, and returns 0, a count or a negative errno.  Arguments of guests and scenarios
// are checked here, before any provider sees them.  The only wait here is for the reader of a file of packets.
//
// # Files
//
// From the top; each calls only those further down.
//
//   - memory, sync: protection domains, regions and windows; the calls that wait in librdmacm
//   - build, cq_extended: posting by builders, polling field by field
//   - addrinfo, ah, channel, cm, cq, device, multicast, option, post, qp, srq: a subject of the man pages each
//   - capture: files of packets
//   - open: providers, their clocks and faults
//   - call, core: what every file here does, and all functions declared
package core

// #cgo CFLAGS: -I${SRCDIR}/.. -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror
import "C"

import (
	"embed"

	_ "rdmarun/rdmacore/provider"
	_ "rdmarun/rdmacore/soft" // core_open opens it
	_ "rdmarun/rdmacore/soft/capture"
	_ "rdmarun/rdmacore/verbs" // core_open opens it
)

// What is embedded is part of what the build cache compares, so that a change of C is a change of the package.
//
//go:embed *.c *.h
var _ embed.FS
