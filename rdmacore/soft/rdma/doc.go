// Package rdma has the functions of librdmacm(7), one by one: each checks as the kernel's cma.c and ucma.c check,
// and moves an id.
package rdma

// #cgo CFLAGS: -I${SRCDIR}/../.. -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror
import "C"

import (
	"embed"

	_ "rdmarun/rdmacore/provider"
	_ "rdmarun/rdmacore/soft/base"
	_ "rdmarun/rdmacore/soft/cm"
	_ "rdmarun/rdmacore/soft/objects"
	_ "rdmarun/rdmacore/soft/qp"
	_ "rdmarun/rdmacore/soft/wire"
)

// What is embedded is part of what the build cache compares, so that a change of C is a change of the package.
//
//go:embed *.c *.h
var _ embed.FS
