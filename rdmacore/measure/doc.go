// Package measure has the native loops of bandwidth, latency and connection measurements: they post and poll on
// threads of their own through core, so that what they measure is the provider and not the language above it.
//
// # Files
//
// From the top; each calls those only that stand below it.
//
//   - create: a measurement is made, prepared and freed; the table of loops
//   - bandwidth, latency: the loops that move data
//   - control, thread: receives and messages between the ends; the threads of the ends
//   - completion, connect, post, serve: what is done, what is to do; the loops that connect and are connected to
//   - connects, layout, verify: connections of the latter two; queues, memory and contents
//   - check, fail: what is checked before; errors, and the stop
//   - result: what came of it
//   - worker: an end and its thread, and most of these declared
//   - histogram, window, wire, measure: counts of values, the timed part, what the ends tell each other, and the face
//     of all this
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
