// Package verbs loads the system's librdmacm and libibverbs at run time and sets the provider table from them. So
// rdmarun starts where neither is installed.
package verbs

// #cgo CFLAGS: -I${SRCDIR}/.. -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror
import "C"

import (
	"embed"

	_ "rdmarun/rdmacore/provider"
)

// What is embedded is part of what the build cache compares, so that a change of C is a change of the package.
//
//go:embed *.c
var _ embed.FS
