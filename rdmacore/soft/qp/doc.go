// Package qp has the verbs of queue pairs: create, modify, and post by ibv_post_send(3) and by builders
// (ibv_wr_post(3)). It also stops queue pairs when their device is removed. Others include verbs.h.
//
// # Files
//
// From the top; each calls only those below it.
//
//   - open: ibv_open_device(3), which sets the operations of a context
//   - build: ibv_wr_post(3)
//   - modify: ibv_modify_qp(3)
//   - attach: ibv_attach_mcast(3)
//   - create: ibv_create_qp(3)
//   - post: ibv_post_send(3)
//   - removal: the device is removed and returns
//   - transition: the table of states
//   - target: the receiving end of an extended connection, and its handles
//   - make: what create and target share
//   - send_queue: the checks of both ways of posting
//   - internal: the functions that these files share
//   - verbs: the verbs: the border of this package
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
