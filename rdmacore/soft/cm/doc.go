// Package cm is the communication manager (IBTA chapter 12) with the ids of rdma_cm(7) that it moves: messages and
// their repeats, port spaces, listeners, paths, multicast joins and what is reported of them.
package cm

// #cgo CFLAGS: -I${SRCDIR}/../.. -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror
import "C"

import (
	"embed"

	_ "rdmarun/rdmacore/soft/base"
	_ "rdmarun/rdmacore/soft/objects"
	_ "rdmarun/rdmacore/soft/qp"
	_ "rdmarun/rdmacore/soft/wire"
)

// What is embedded is part of what the build cache compares, so that a change of C is a change of the package.
//
//go:embed *.c *.h
var _ embed.FS
