package rdmacore

// #include "core/core.h"
import "C"

import (
	"syscall"
	"unsafe"
)

// OptionLevel is the level of an option of SetOption.
type OptionLevel int

// IDOption is an option of an id; its numbers begin anew at each level.
type IDOption int

// SetOption sets an option (rdma_set_option(3)). EINVAL for a value of another size than the option's or one that it
// rejects in this state. ENOSYS for an unknown option.
func (id *ID) SetOption(level OptionLevel, option IDOption, value []byte) error {
	const op = "rdma_set_option"
	if !id.open() {
		return closed(op, "id")
	}
	answer := id.channel.provider.ask(func() C.int {
		return C.core_set_option(id.native(), id.c, C.int(level), C.int(option),
			unsafe.Pointer(unsafe.SliceData(value)), C.size_t(len(value)))
	})
	if answer.result == -int(syscall.ENOSYS) && id.channel.provider.c.rdma_set_option != nil {
		return fail(op, syscall.ENOSYS, "no option %d of level %d is known", option, level)
	}
	return id.explain(op, answer, "")
}

// SetIBPath gives the id its route in place of ResolveRoute, as path records (struct ibv_path_data[], as
// RoutePath and AddrInfo.Route have them).  Ends with ROUTE_RESOLVED.
func (id *ID) SetIBPath(paths []byte) error {
	if err := id.SetOption(OptionIB, OptionIBPath, paths); err != nil || !id.synchronous {
		return err
	}
	id.channel.mu.Lock()
	defer id.channel.mu.Unlock()
	id.pending = "rdma_set_option"
	return nil
}

// RoutePath is the path record of the resolved route as SetIBPath takes it.  ENOENT while there is none.
func (id *ID) RoutePath() ([]byte, error) {
	const op = "rdma_resolve_route"
	if !id.open() {
		return nil, closed(op, "id")
	}
	var path C.struct_ibv_path_data
	if err := check(op, int(C.core_route_path(id.c, &path))); err != nil {
		return nil, err
	}
	return C.GoBytes(unsafe.Pointer(&path), C.int(unsafe.Sizeof(path))), nil
}
