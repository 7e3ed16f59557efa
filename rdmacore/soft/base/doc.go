// Package base is a host without devices: its clock and timers, real or virtual, its random numbers, the faults that
// are injected, locks and their order, numbered tables, and queues of events.  Soft has no other source of time or
// randomness.
//
// # Files
//
// From the top; each calls only those further down.
//
//   - fabric: all of the following, as one host has them
//   - notice: what was dropped is said, now and then
//   - event_queue, fault, table: events to be read, injected faults, numbers to objects
//   - timer, poller: deadlines, descriptors, and the thread that serves each
//   - page_guard: memory of the program that may be gone
//   - lock, mutex: the spin locks of the data path, the others, and threads
//   - local_name: names by which processes of this machine find each other
//   - local_list: the kernel's list of sockets
//   - order: the order in which locks are taken
//   - clock, random: time; chance and secret numbers
//   - bounds, capability, refusal: the limits of a device; what the process may do; why a call was refused, in a
//     sentence
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
