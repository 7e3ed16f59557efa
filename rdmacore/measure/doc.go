// Package measure has the native loops of bandwidth, latency and connection measurements: they post and poll on
// threads of their own through core, so that what they measure is the provider and not the language above it.
package measure

// #cgo CFLAGS: -I${SRCDIR}/.. -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror
import "C"

import (
	"embed"

	_ "rdmarun/rdmacore/core"
	_ "rdmarun/rdmacore/provider"
)

// What is embedded is part of what the build cache compares, so that a change of C is a change of the package.
//
//go:embed *.c *.h
var _ embed.FS
