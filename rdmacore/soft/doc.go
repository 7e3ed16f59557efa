// Package soft fills the provider table with the soft provider, which needs no hardware, kernel module or privilege
// and behaves as the kernel does. Each open provider is a host of its own: its devices, ports and time are nothing
// to another.
package soft

// #cgo CFLAGS: -I${SRCDIR}/.. -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror
import "C"

import (
	"embed"

	_ "rdmarun/rdmacore/provider"
	_ "rdmarun/rdmacore/soft/base"
	_ "rdmarun/rdmacore/soft/capture"
	_ "rdmarun/rdmacore/soft/cm"
	_ "rdmarun/rdmacore/soft/link"
	_ "rdmarun/rdmacore/soft/objects"
	_ "rdmarun/rdmacore/soft/qp"
	_ "rdmarun/rdmacore/soft/rdma"
	_ "rdmarun/rdmacore/soft/udp"
	_ "rdmarun/rdmacore/soft/wire"
)

// What is embedded is part of what the build cache compares, so that a change of C is a change of the package.
//
//go:embed *.c *.h
var _ embed.FS
