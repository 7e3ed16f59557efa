// Package measure has the native loops of bandwidth, latency and connection measurements. They post and poll on their
// own threads through core, so they measure the provider and not the language above it.
//
// # Files
//
// From the top; each calls only those below it.
//
//   - create: a measurement is created, prepared and freed; the table of loops
//   - bandwidth: the loop of many messages
//   - latency: the loops of one message at a time
//   - control: receives, and control messages between the ends
//   - thread: the threads of the ends
//   - completion: completions, and contents of messages
//   - connect: the loop of the connecting end
//   - post: data requests
//   - serve: the loop of the accepting end
//   - connects: connections of connect and serve
//   - layout: the queues and memory of an end
//   - verify: patterns of messages
//   - check: checks before a measurement
//   - fail: errors, and stopping
//   - result: results
//   - worker: an end and its thread, and most functions
//   - histogram: counts of values
//   - window: the timed part
//   - wire: control messages
//   - measure: the border of this package
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
