// Package base is a host without devices. It has the clock and timers (real or virtual), random numbers and injected
// faults, locks and their order, numbered tables, and event queues. Soft has no other source of time or randomness.
//
// # Files
//
// From the top; each calls only those below it.
//
//   - fabric: one host: all of the following
//   - notice: lines about dropped packets
//   - event_queue: events that users read
//   - fault: injected faults
//   - table: numbers to objects
//   - legal: choices of legal behaviour
//   - timer: deadlines, and the thread that serves them
//   - poller: descriptors, and the thread that serves them
//   - page_guard: registered memory that the program has unmapped
//   - lock: spin locks of the data path
//   - mutex: other locks, and threads
//   - local_name: names by which processes of this machine find each other
//   - local_list: the kernel's list of sockets
//   - order: the order in which locks are taken
//   - clock: time
//   - random: chance and secret numbers
//   - bounds: the limits of a device
//   - capability: privileges of the process
//   - refusal: why a call failed, in a sentence
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
