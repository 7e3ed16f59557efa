package verb

import (
	"context"
	"fmt"

	"rdmarun/host/scenario/lab"
	"rdmarun/rdmacore"
)

// CanWindow is the capability of devices that have memory windows.
const CanWindow = "device.mw"

// windowVerbs allocate memory windows; bind_mw, which is a work request, makes them good for something.
func windowVerbs() []Verb {
	window := Argument{Name: "mw", Type: Window, Required: true, Doc: "the window, by the name that `as` gave it"}
	key := Result{Name: "rkey", Type: Integer, Hex: true, Varies: true, Doc: "key for the peer, good once the request has completed"}
	return []Verb{
		{
			Name: "alloc_mw", Manual: "ibv_alloc_mw(3)", Capability: CanWindow, Yields: NewWindow, Run: allocMW,
			Doc: "Allocate a memory window, bound to nothing.",
			Arguments: []Argument{theDomain(),
				{Name: "type", Type: Integer, Default: 1, Max: 255, Doc: "1: good for every queue pair of the domain; 2: for the one that binds it, and the peer can invalidate it"}},
			Results: []Result{{Name: "rkey", Type: Integer, Hex: true, Varies: true, Doc: "its key, good for nothing until bind_mw gives it another"}},
		},
		{
			Name: "bind_mw", Manual: "ibv_bind_mw(3)", Capability: CanWindow, Yields: Value, Run: bindMW,
			Doc: "Post a request to bind a window to a part of a buffer, which must have the right MW_BIND; of type 2 as ibv_post_send(3) with BIND_MW.",
			Arguments: []Argument{{Name: "ep", Type: Endpoint, Doc: "the endpoint; without it the role's only one"}, window,
				{Name: "buffer", Type: Buffer, Doc: "the buffer; without it the window, of type 1, is bound to nothing"},
				{Name: "offset", Type: Size, Default: 0, Doc: "where in the buffer"},
				{Name: "length", Type: Size, Doc: "how many bytes; without it, to the end of the buffer"},
				{Name: "access", Type: PeerRights, Doc: "what the peer may do through the window"},
				{Name: "wr_id", Type: Unsigned, Default: uint64(0), Doc: "comes back in the completion"},
				{Name: "signaled", Type: Boolean, Doc: "make a completion, also when the queue pair has not sig_all"},
				{Name: "fence", Type: Boolean, Doc: "wait for the READs and atomics before"}},
			Results: []Result{
				{Name: "addr", Type: Integer, Hex: true, Varies: true, Doc: "address of the window's first byte"}, key,
				{Name: "length", Type: Integer, Doc: "its bytes"},
			},
		},
		{
			Name: "dealloc_mw", Manual: "ibv_dealloc_mw(3)", Capability: CanWindow, Scalar: "mw", Arguments: []Argument{window},
			Doc: "Free a memory window; its key ends.",
			Run: freeing("mw", (*lab.Role).Window),
		},
	}
}

func allocMW(_ context.Context, call *Call) (Outcome, error) {
	pd, err := domainOf(call)
	if err != nil {
		return Outcome{}, err
	}
	window, err := call.Role.NewWindow(pd, rdmacore.MWType(call.Integer("type")))
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Made: window, Fields: []any{int(window.Native().RKey())}}, nil
}

func bindMW(_ context.Context, call *Call) (Outcome, error) {
	qp, endpoint, err := queuePair(call)
	if err != nil {
		return Outcome{}, err
	}
	window, err := call.Role.Window(call.Text("mw"))
	if err != nil {
		return Outcome{}, err
	}
	bind := rdmacore.MWBind{WRID: call.Unsigned("wr_id"), Flags: sendFlags(call)}
	bind.Access, _ = call.argument("access").(rdmacore.Access)
	if call.Has("buffer") {
		s, err := stretchOf(call)
		if err != nil {
			return Outcome{}, err
		}
		bind.MR, bind.Address, bind.Length = s.buffer.Region(), s.buffer.Address(s.offset), uint64(s.length)
		if bind.MR == nil {
			return Outcome{}, &lab.Failure{What: fmt.Sprintf("buffer %q is not registered", s.buffer.Name), Hint: "reg registers it again"}
		}
	}
	if err := qp.BindMW(window.Native(), bind); err != nil {
		return Outcome{}, err
	}
	window.FreeFirst() // before the buffer's registration and the queue pair
	noteUnsignaled(qp, endpoint, bind.Flags)
	call.Lab.Posted(rdmacore.OpBindMW, 0)
	rkey := window.Native().RKey()
	return Outcome{Fields: []any{int(bind.Address), int(rkey), int(bind.Length)}, Summary: func() string { return fmt.Sprintf("rkey %#x", rkey) }}, nil
}

// postLocalInvVerb ends a key by a request of one's own; `invalidate` of post_send does by the peer's.
func postLocalInvVerb(endpoint, wrID Argument, flags []Argument) Verb {
	return Verb{
		Name: "post_local_inv", Manual: "ibv_post_send(3)", Capability: CanWindow,
		Doc: "Post a request that ends a key: of a window of type 2 that the queue pair has bound.",
		Arguments: append([]Argument{endpoint,
			{Name: "rkey", Type: Integer, Required: true, Max: 1<<32 - 1, Doc: "the key"}, wrID}, flags...),
		Run: func(_ context.Context, call *Call) (Outcome, error) {
			qp, endpoint, err := queuePair(call)
			if err != nil {
				return Outcome{}, err
			}
			request := [1]rdmacore.SendWR{{
				WRID: call.Unsigned("wr_id"), Opcode: rdmacore.OpLocalInv, Flags: sendFlags(call), ImmData: uint32(call.Integer("rkey")),
			}}
			if _, err := qp.PostSend(request[:], nil); err != nil {
				return Outcome{}, err
			}
			noteUnsignaled(qp, endpoint, request[0].Flags)
			call.Lab.Posted(rdmacore.OpLocalInv, 0)
			return Outcome{}, nil
		},
	}
}
