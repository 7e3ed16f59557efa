package verb

import (
	"context"
	"fmt"

	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// CanWindow is the capability of devices that have memory windows.
const CanWindow = "device.mw"

// windowVerbs allocate memory windows; bind_mw, which is a work request, makes them good for something.
func windowVerbs() []Verb {
	return []Verb{
		define(Verb{
			Name: "alloc_mw", Manual: "ibv_alloc_mw(3)", Capability: CanWindow, Yields: NewWindow,
			Doc: "Allocate a memory window, bound to nothing.",
		}, allocMW),
		define(Verb{
			Name: "bind_mw", Manual: "ibv_bind_mw(3)", Capability: CanWindow, Yields: Value,
			Doc: "Post a request to bind a window to a part of a buffer, which must have the right MW_BIND; of type 2 as ibv_post_send(3) with BIND_MW.",
		}, bindMW),
		define(Verb{
			Name: "dealloc_mw", Manual: "ibv_dealloc_mw(3)", Capability: CanWindow, Scalar: "mw",
			Doc: "Free a memory window; its key ends.",
		}, action(func(_ context.Context, _ *Call, args *theWindow) error { return args.MW.Free() })),
		define(Verb{
			Name: "post_local_inv", Manual: "ibv_post_send(3)", Capability: CanWindow,
			Doc: "Post a request that ends a key: of a window of type 2 that the queue pair has bound.",
		}, action(postLocalInv)),
	}
}

// theWindow is the argument of verbs that concern a window.
type theWindow struct {
	MW *testbed.Window `arg:"mw,required" doc:"the window, by the name that 'as' gave it"`
}

func allocMW(_ context.Context, call *Call, args *struct {
	inDomain
	Type uint8 `arg:"type" default:"1" doc:"1: good for every queue pair of the domain; 2: for the one that binds it, and the peer can invalidate it"`
}) (result struct {
	RKey uint32 `result:"rkey,hex,varies" doc:"its key, good for nothing until bind_mw gives it another"`
}, err error) {
	window, err := call.Role.NewWindow(args.domain(call), rdmacore.MWType(args.Type))
	if err != nil {
		return result, err
	}
	call.Outcome.Made = window
	result.RKey = window.Native().RKey()
	return result, nil
}

func bindMW(_ context.Context, call *Call, args *struct {
	onlyEndpoint
	theWindow
	Buffer *testbed.Buffer     `arg:"buffer" doc:"the buffer; without it the window, of type 1, is bound to nothing"`
	Offset byteCount           `arg:"offset" default:"0" doc:"where in the buffer"`
	Length Optional[byteCount] `arg:"length" doc:"how many bytes; without it, to the end of the buffer"`
	Access peerRights          `arg:"access" doc:"what the peer may do through the window"`
	wrID
	requestFlags
}) (result struct {
	Addr   int    `result:"addr,hex,varies" doc:"address of the window's first byte"`
	RKey   uint32 `result:"rkey,hex,varies" doc:"key for the peer, good once the request has completed"`
	Length int    `result:"length" doc:"its bytes"`
}, err error) {
	qp, err := args.EP.QP()
	if err != nil {
		return result, err
	}
	window := args.MW
	bind := rdmacore.MWBind{WRID: args.WRID, Flags: args.native(), Access: rdmacore.Access(args.Access)}
	if args.Buffer != nil {
		s, err := spanOf(args.Buffer, args.Offset, args.Length)
		if err != nil {
			return result, err
		}
		bind.MR, bind.Address, bind.Length = s.buffer.Region(), s.buffer.Address(s.offset), uint64(s.length)
		if bind.MR == nil {
			return result, &testbed.Failure{What: fmt.Sprintf("buffer %q is not registered", s.buffer.Name), Hint: "reg registers it again"}
		}
	}
	if err := qp.BindMW(window.Native(), bind); err != nil {
		return result, err
	}
	window.FreeFirst() // before the buffer's registration and the queue pair
	notePosted(call, args.EP, rdmacore.OpBindMW, bind.Flags, 0)
	result.Addr, result.RKey, result.Length = int(bind.Address), window.Native().RKey(), int(bind.Length)
	call.Outcome.Summary = func() string { return fmt.Sprintf("rkey %#x", result.RKey) }
	return result, nil
}

// postLocalInv ends a key by a request of one's own; `invalidate` of post_send does by the peer's.
func postLocalInv(_ context.Context, call *Call, args *struct {
	onlyEndpoint
	RKey uint32 `arg:"rkey,required" doc:"the key"`
	wrID
	requestFlags
}) error {
	request := rdmacore.SendWR{WRID: args.WRID, Opcode: rdmacore.OpLocalInv, Flags: args.native(), ImmData: args.RKey}
	return postOne(call, args.EP, rdmacore.OpLocalInv, request, nil, 0)
}
