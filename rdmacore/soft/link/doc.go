// Package link carries packets between queue pairs: local, within the process and at the speed of memory; packets, a
// network whose packets take time and can be lost, duplicated and reordered; and udp, the sockets of an ordinary user.
// transmit takes requests from a send queue and picks the link.
//
// # Files
//
// From the top; each calls only those further down.
//
//   - udp: sockets, and the numbers of queue pairs they are for
//   - udp_management: the communication manager's messages to other hosts
//   - udp_share: processes that have the port of other hosts together
//   - udp_progress: who takes packets from the kernel, and when what is pending is acknowledged
//   - udp_receive, udp_send: what a system call brings; packets of one length leave together
//   - udp_reads: an answer to a READ goes out in parts, with other work between them
//   - udp_pass: packets that came to the wrong process
//   - udp_faults: what comes from elsewhere is lost, delayed and duplicated here
//   - packets: the network that can lose, double and reorder
//   - receive: a datagram arrives
//   - transmit: a send queue is sent, on the link that its queue pair has
//   - local: from queue pair to queue pair
//   - send: into a packet of a link, and what faults may say of packets
//   - udp_socket: sockets, each of one address
//   - udp_watch: of processes that share the port, those that are stopped get nothing; management has sockets of its
//     own
//   - udp_owner: who else has the port of other hosts
//   - udp_identification: whether the kernel writes IP headers as the ICRC has them
//   - calls: all but packets and udp declared
package link

// #cgo CFLAGS: -I${SRCDIR}/../.. -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror
import "C"

import (
	"embed"

	_ "rdmarun/rdmacore/provider"
	_ "rdmarun/rdmacore/soft/base"
	_ "rdmarun/rdmacore/soft/capture"
	_ "rdmarun/rdmacore/soft/engine"
	_ "rdmarun/rdmacore/soft/objects"
	_ "rdmarun/rdmacore/soft/wire"
)

// What is embedded is part of what the build cache compares, so that a change of C is a change of the package.
//
//go:embed *.c *.h
var _ embed.FS
