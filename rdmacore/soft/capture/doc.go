// Package capture writes the packets of a host to a pcapng file, as RoCE v2 packets. It writes the datagrams of a link
// unchanged. Messages of the local link and of the connection manager are written as they would be on a wire.
//
// # Files
//
// From the top; each calls only those below it.
//
//   - message: packets of messages that have no bytes yet
//   - capture: the interfaces, steps and packets of a host
//   - file: the file, its memory, and the thread that writes it
//   - own_file: opening a file where other users may write, too
//   - pcapng: the blocks of the file
package capture

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
