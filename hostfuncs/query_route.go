package hostfuncs

import (
	"syscall"

	"rdmarun/rdmacore"
)

func queryRouteFunctions() []Function {
	return []Function{{
		Name: "query_route", Since: v1_3, Capability: CapabilityCM,
		Doc: "Writes the route that resolve_route found, as set_option takes it (level IB, PATH) for another " +
			"endpoint: " +
			"struct ibv_path_data.",
		Params: []Param{{"ep", HandleOf, "ep", ""},
			{"path", Out, "bytes", ""}, {"size", U32, "", "room there, in bytes"}},
		Result:  "the bytes written",
		Errors:  "ENOENT: there is no route yet. ENOSPC: it needs more room.",
		binding: bind3((*Instance).queryRoute),
	}}
}

func (i *Instance) queryRoute(handle Handle, at Pointer, size uint32) int32 {
	out, wrong := i.bytes(at, size)
	if wrong != 0 {
		return i.badPointer("path", wrong)
	}
	written := 0
	failed := i.onID(handle, func(id *rdmacore.ID) error {
		path, err := id.RoutePath()
		if err == nil && len(path) > len(out) {
			return &rdmacore.Error{Op: "query_route", Errno: syscall.ENOSPC, Why: "the path has more bytes than size"}
		}
		written = copy(out, path)
		return err
	})
	if failed != 0 {
		return failed
	}
	return int32(written)
}
