package verb

import (
	"context"
	"fmt"
	"syscall"

	"rdmarun/host/scenario/lab"
	"rdmarun/rdmacore"
)

// memoryVerbs register and deregister buffers.  All buffers are registered when a case begins.
func memoryVerbs() []Verb {
	buffer := Argument{Name: "buffer", Type: Buffer, Required: true, Doc: "the buffer"}
	return []Verb{
		{
			Name: "reg", Manual: "ibv_reg_mr(3)", Yields: Value, Run: register,
			Doc: "Register a buffer again after dereg, perhaps with other rights.",
			Arguments: []Argument{buffer,
				{Name: "access", Type: Rights, Doc: "rights; without them those of the buffer"},
				theDomain(),
				{Name: "of", Type: Endpoint, Doc: "an endpoint whose protection domain it is, as rdma_reg_msgs(3) takes it"},
				{Name: "iova", Type: Integer, Max: 1<<63 - 1, Doc: "an address of one's own for the first byte, which requests name it by (ibv_reg_mr_iova(3))"}},
			Results: regionResults(),
		},
		reregVerb(),
		{
			Name: "dereg", Manual: "ibv_dereg_mr(3)", Run: deregister,
			Doc:       "End the registration of a buffer.  Its old keys stay in expressions, for requests that must be refused.",
			Arguments: []Argument{buffer},
		},
	}
}

func register(_ context.Context, call *Call) (Outcome, error) {
	buffer, err := call.Buffer("buffer")
	if err != nil {
		return Outcome{}, err
	}
	access, given := call.argument("access").(rdmacore.Access)
	if !given {
		access = buffer.Access()
	}
	pd, err := domainOf(call)
	if err != nil {
		return Outcome{}, err
	}
	if call.Has("of") {
		endpoint, err := call.Endpoint("of")
		if err != nil {
			return Outcome{}, err
		}
		if pd = endpoint.ID().PD(); pd == nil {
			return Outcome{}, &lab.Failure{What: endpoint.Name + " has no protection domain", Hint: "bind_addr or resolve_addr comes first", Errno: syscall.EINVAL}
		}
	}
	if call.Has("iova") {
		err = buffer.RegisterAt(pd, uint64(call.Integer("iova")), access)
	} else {
		err = buffer.RegisterIn(pd, access)
	}
	if err != nil {
		return Outcome{}, err
	}
	return regionOf(buffer), nil
}

func regionResults() []Result {
	return []Result{
		{Name: "addr", Type: Integer, Hex: true, Varies: true, Doc: "address of the first byte"},
		{Name: "rkey", Type: Integer, Hex: true, Varies: true, Doc: "key for the peer"},
		{Name: "lkey", Type: Integer, Hex: true, Varies: true, Doc: "key for own requests"},
	}
}

func regionOf(buffer *lab.Buffer) Outcome {
	view := buffer.View()
	return Outcome{
		Buffers: []*lab.Buffer{buffer},
		Fields:  []any{view.Addr, view.RKey, view.LKey},
		Summary: func() string { return fmt.Sprintf("rkey %#x", view.RKey) },
	}
}

func deregister(_ context.Context, call *Call) (Outcome, error) {
	buffer, err := call.Buffer("buffer")
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{}, buffer.Deregister()
}
