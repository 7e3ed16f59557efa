package verb

import (
	"context"
)

// partitionVerbs ask for the partition keys of a port.
func partitionVerbs() []Verb {
	port := Argument{Name: "port", Type: Integer, Default: 1, Max: 255, Doc: "number of the port"}
	return []Verb{
		{
			Name: "query_pkey", Manual: "ibv_query_pkey(3)", Yields: Value,
			Doc: "Ask the role's device for a partition key of a port.",
			Arguments: []Argument{port,
				{Name: "index", Type: Integer, Default: 0, Max: 1<<31 - 1, Doc: "in the port's table"}},
			Results: []Result{{Name: "pkey", Type: Integer, Doc: "the key; its highest bit tells a full member from a limited one"}},
			Run: func(_ context.Context, call *Call) (Outcome, error) {
				key, err := call.Role.Device().PKey(call.Integer("port"), call.Integer("index"))
				return Outcome{Fields: []any{int(key)}}, err
			},
		},
		{
			Name: "get_pkey_index", Manual: "ibv_get_pkey_index(3)", Yields: Value,
			Doc: "Ask the role's device where in a port's table a partition key is.",
			Arguments: []Argument{port,
				{Name: "pkey", Type: Integer, Required: true, Max: 65535, Doc: "the key"}},
			Results: []Result{{Name: "index", Type: Integer, Doc: "in the port's table"}},
			Run: func(_ context.Context, call *Call) (Outcome, error) {
				index, err := call.Role.Device().PKeyIndex(call.Integer("port"), uint16(call.Integer("pkey")))
				return Outcome{Fields: []any{index}}, err
			},
		},
	}
}
