// Package qp has queue pairs as users have them: created, modified, posted to by ibv_post_send(3) and by builders
// (ibv_wr_post(3)), shared by another process's number, and removed with their device.
//
// # Files
//
// From the top; each calls those only that stand below it.
//
//   - open: ibv_open_device(3): a context, and the operations that verbs.h finds in it
//   - build, modify: ibv_wr_post(3), ibv_modify_qp(3)
//   - create, post, removal, transition: ibv_create_qp(3), ibv_post_send(3); the device goes and comes back; which
//     states lead to which
//   - send_queue: what both ways of posting hold a request against
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
