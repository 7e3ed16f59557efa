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
		ask("alloc_mw", "ibv_alloc_mw(3)", "Allocate a memory window, bound to nothing.", allocMW).needing(CanWindow).yields(NewWindow),
		ask("bind_mw", "ibv_bind_mw(3)",
			"Post a request to bind a window to a part of a buffer, which must have the right MW_BIND; of type 2 as ibv_post_send(3) with BIND_MW.",
			bindMW).needing(CanWindow),
		act("dealloc_mw", "ibv_dealloc_mw(3)", "Free a memory window; its key ends.",
			func(_ context.Context, _ *Call, args *theWindow) error { return args.MW.Free() }).needing(CanWindow).scalar("mw"),
		act("post_local_inv", "ibv_post_send(3)", "Post a request that ends a key: of a window of type 2 that the queue pair has bound.",
			postLocalInv).needing(CanWindow),
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

// boundWindow is a window as its last bind made it.
type boundWindow struct {
	Addr   int    `result:"addr,hex,varies" doc:"address of the window's first byte"`
	RKey   uint32 `result:"rkey,hex,varies" doc:"key for the peer, good once the request has completed"`
	Length int    `result:"length" doc:"its bytes"`
}

func (w boundWindow) summary() string { return fmt.Sprintf("rkey %#x", w.RKey) }

func bindMW(_ context.Context, call *Call, args *struct {
	onlyQueuePair
	theWindow
	Buffer *testbed.Buffer     `arg:"buffer" doc:"the buffer; without it the window, of type 1, is bound to nothing"`
	Offset byteCount           `arg:"offset" default:"0" doc:"where in the buffer"`
	Length Optional[byteCount] `arg:"length" doc:"how many bytes; without it, to the end of the buffer"`
	Access peerRights          `arg:"access" doc:"what the peer may do through the window"`
	wrID
	requestFlags
}) (boundWindow, error) {
	window := args.MW
	bind := rdmacore.MWBind{WRID: args.WRID, Flags: args.native(), Access: rdmacore.Access(args.Access)}
	if args.Buffer != nil {
		s, err := spanOf(args.Buffer, args.Offset, args.Length)
		if err != nil {
			return boundWindow{}, err
		}
		bind.MR, bind.Address, bind.Length = s.buffer.Region(), s.buffer.Address(s.offset), uint64(s.length)
		if bind.MR == nil {
			return boundWindow{}, &testbed.Failure{What: fmt.Sprintf("buffer %q is not registered", s.buffer.Name), Hint: "reg registers it again"}
		}
	}
	if err := args.qp.BindMW(window.Native(), bind); err != nil {
		return boundWindow{}, err
	}
	window.FreeFirst() // before the buffer's registration and the queue pair
	args.posted(call, rdmacore.OpBindMW, bind.Flags, 0)
	return boundWindow{int(bind.Address), window.Native().RKey(), int(bind.Length)}, nil
}

// postLocalInv ends a key by a request of one's own; `invalidate` of post_send does by the peer's.
func postLocalInv(_ context.Context, call *Call, args *struct {
	onlyQueuePair
	RKey uint32 `arg:"rkey,required" doc:"the key"`
	wrID
	requestFlags
}) error {
	request := rdmacore.SendWR{WRID: args.WRID, Opcode: rdmacore.OpLocalInv, Flags: args.native(), ImmData: args.RKey}
	return args.post(call, rdmacore.OpLocalInv, request, nil, 0)
}
