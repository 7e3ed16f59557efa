// Package qp has queue pairs as users have them: created, modified, posted to by ibv_post_send(3) and by builders
// (ibv_wr_post(3)), and stopped when their device is removed.
//
// # Files
//
// From the top; each calls only those further down.
//
//   - open: ibv_open_device(3), with the operations that verbs.h finds in a context
//   - build, modify: ibv_wr_post(3); ibv_modify_qp(3)
//   - attach, create, post, removal, transition: ibv_attach_mcast(3); ibv_create_qp(3); ibv_post_send(3); the device
//     goes and comes back; the table of states
//   - target: the receiving end of an extended connection, and handles of it
//   - make: what both have in common
//   - send_queue: what both ways of posting check
//   - verbs: all of them declared
package qp

// #cgo CFLAGS: -I${SRCDIR}/../.. -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror
import "C"

import (
	"embed"

	_ "rdmarun/rdmacore/provider"
	_ "rdmarun/rdmacore/soft/base"
	_ "rdmarun/rdmacore/soft/engine"
	_ "rdmarun/rdmacore/soft/link"
	_ "rdmarun/rdmacore/soft/objects"
	_ "rdmarun/rdmacore/soft/wire"
)

// What is embedded is part of what the build cache compares, so that a change of C is a change of the package.
//
//go:embed *.c *.h
var _ embed.FS
