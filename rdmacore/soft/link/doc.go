// Package link transfers packets between queue pairs. local works within the process at the speed of memory. packets is
// a simulated network: packets take time and can be lost, duplicated and reordered. The link udp is a package of its
// own. transmit takes requests from a send queue and selects the link.
//
// # Files
//
// From the top; each calls only those below it.
//
//   - packets: the simulated network
//   - receive: received datagrams
//   - transmit: sends a send queue on the link of its queue pair
//   - local: from queue pair to queue pair
//   - send: packets of a link, and what fault rules can match in them
//   - calls: the functions of all but packets
package link

// #cgo CFLAGS: -I${SRCDIR}/../.. -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror
import "C"

import (
	"embed"

	_ "rdmarun/rdmacore/provider"
	_ "rdmarun/rdmacore/soft/base"
	_ "rdmarun/rdmacore/soft/capture"
	_ "rdmarun/rdmacore/soft/engine"
	_ "rdmarun/rdmacore/soft/objects"
	_ "rdmarun/rdmacore/soft/wire"
)

// What is embedded is part of what the build cache compares, so that a change of C is a change of the package.
//
//go:embed *.c *.h
var _ embed.FS
