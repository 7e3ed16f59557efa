package hostfuncs

import (
	"math"
	"syscall"
)

func partitionFunctions() []Function {
	ep := Param{"ep", HandleOf, "ep", "an endpoint of the device; 0 for the default device"}
	port := Param{"port", U32, "", "number of the port, from 1"}
	return []Function{
		{
			Name: "query_pkey", Since: v1_4, Capability: CapabilityDevice,
			Doc:     "Returns a partition key of a port (ibv_query_pkey(3)).",
			Params:  []Param{ep, port, {"index", U32, "", "in the port's table"}},
			Result:  "the key; its highest bit is set for a full member, not for a limited one",
			Errors:  "ENOENT: there is no such port or index. EINVAL: no number of a port or an index.",
			binding: bind3((*Instance).queryPKey),
		},
		{
			Name: "get_pkey_index", Since: v1_4, Capability: CapabilityDevice,
			Doc:    "Finds a partition key in a port's table (ibv_get_pkey_index(3)).",
			Params: []Param{ep, port, {"pkey", U32, "", "the key"}},
			Result: "its index",
			Errors: "ENOENT: there is no such port, or the key is not in its table. EINVAL: no number of a port, " +
				"or more than 16 bits.",
			binding: bind3((*Instance).getPKeyIndex),
		},
	}
}

func (i *Instance) queryPKey(handle Handle, port, index uint32) int32 {
	device, failed := i.deviceOf(handle)
	if failed != 0 {
		return failed
	}
	key, err := device.PKey(int(port), int(index))
	if err != nil {
		return i.fail(err)
	}
	return int32(key)
}

func (i *Instance) getPKeyIndex(handle Handle, port, pkey uint32) int32 {
	device, failed := i.deviceOf(handle)
	if failed != 0 {
		return failed
	}
	if pkey > math.MaxUint16 {
		return i.refuse(syscall.EINVAL, "a partition key has 16 bits")
	}
	index, err := device.PKeyIndex(int(port), uint16(pkey))
	if err != nil {
		return i.fail(err)
	}
	return int32(index)
}
