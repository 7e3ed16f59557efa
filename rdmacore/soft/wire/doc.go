// Package wire has packets as fields and as bytes: RoCE v2 headers (IBTA annex A17), IP, the invariant CRC, and
// messages of connection management. It does not know queue pairs.
//
// # Files
//
// From the top; each calls only those below it.
//
//   - mad: messages of connection management as management datagrams
//   - icrc: the invariant CRC
//   - bytes: packets as bytes
//   - crc32: CRC-32
//   - ip: IP and UDP headers
//   - packet: packets as fields
//   - opcode: opcodes, syndromes and codes of times
//   - address: GIDs and addresses of sockets
//   - datagram: the functions of bytes, crc32, icrc and ip
//   - fields: numbers in packets
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
