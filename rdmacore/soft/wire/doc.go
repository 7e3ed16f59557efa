// Package wire has packets as fields and as bytes: RoCE v2 headers (IBTA annex A17), messages of connection management,
// the invariant CRC and IP. It knows no queue pair.
//
// # Files
//
// From the top; each calls those only that stand below it.
//
//   - mad: messages of connection management, and the datagrams that carry them
//   - bytes: packets as they lie in a datagram
//   - icrc, ip, packet: their check, what carries them, and their fields
//   - fields: numbers as they lie in any of these
package wire

// #cgo CFLAGS: -I${SRCDIR}/../.. -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror
import "C"

import (
	"embed"

	_ "rdmarun/rdmacore/soft/base"
)

// What is embedded is part of what the build cache compares, so that a change of C is a change of the package.
//
//go:embed *.c *.h
var _ embed.FS
