// Package base is a host without devices: its clock and timers, real or virtual, its random numbers, what goes
// wrong on purpose, locks and their order, numbered tables and the queues of events. All randomness and time that
// soft has come from here.
//
// # Files
//
// From the top; each calls those only that stand below it.
//
//   - fabric: all of the following, as one host has them
//   - event_queue, fault, table, timer: what is read later, what goes wrong on purpose, numbers, and what comes in
//     time
//   - lock, mutex: the locks of the data path, and the others
//   - order: which lock may be taken after which
//   - clock, random, secret: time and chance
//   - bounds, refusal: how much there may be; why a call was refused, in a sentence
package base

// #cgo CFLAGS: -I${SRCDIR}/../.. -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror
import "C"

import (
	"embed"

	_ "rdmarun/rdmacore/provider"
)

// What is embedded is part of what the build cache compares, so that a change of C is a change of the package.
//
//go:embed *.c *.h
var _ embed.FS
