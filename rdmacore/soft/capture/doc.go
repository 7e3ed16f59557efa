// Package capture writes what a host sends to a pcapng file, as RoCE v2 packets: those that a link has as datagrams,
// and those that messages of the local link and of the connection manager would be on a wire.
//
// # Files
//
// From the top; each calls only those further down.
//
//   - message: packets of what has no bytes
//   - capture: the functions of a host: its interfaces, steps and packets
//   - file: the file, its memory, and the thread that writes it
//   - own_file: the opening of a file where other users may write, too
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
