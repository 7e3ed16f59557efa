package verb

import (
	"context"
	"fmt"
	"syscall"

	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// memoryVerbs make protection domains, and register and deregister buffers.  All buffers are registered when a case
// begins.
var memoryVerbs = []Verb{
	act("alloc_pd", "ibv_alloc_pd(3)", "Make a protection domain.",
		func(_ context.Context, call *Call, _ *none) error {
			domain, err := call.Role.NewDomain()
			return call.made(domain, err)
		}).making(Domain),
	act("dealloc_pd", "ibv_dealloc_pd(3)", "Free a protection domain, which nothing may use.",
		func(_ context.Context, _ *Call, args *struct {
			PD *testbed.Domain `arg:"pd,required" doc:"the domain, by the name that 'as' gave it"`
		}) error {
			return args.PD.Free()
		}).scalar("pd"),
	ask("reg", "ibv_reg_mr(3)", "Register a buffer again after dereg, perhaps with other rights.", register),
	ask(Rereg, "ibv_rereg_mr(3)",
		"Change the registration of a buffer while requests may be using it: what is given changes, the rest stays, "+
			"and so may the keys.  From then on the peer reaches nothing of what was registered before.",
		reregister),
	act("dereg", "ibv_dereg_mr(3)",
		"End the registration of a buffer.  Its old keys stay in expressions, for requests that must be refused.",
		func(_ context.Context, _ *Call, args *theBuffer) error { return args.Buffer.Deregister() }),
}

// theBuffer is the argument of verbs that work on a buffer.
type theBuffer struct {
	Buffer *testbed.Buffer `arg:"buffer,required" doc:"the buffer"`
}

// inDomain is the argument of what is made in a protection domain.
type inDomain struct {
	PD *testbed.Domain `arg:"pd" doc:"a protection domain of alloc_pd; without it that of the role's buffers"`
}

// domain is the protection domain that the step names, or that of the role.
func (d *inDomain) domain(call *Call) *rdmacore.PD {
	if d.PD == nil {
		return call.Role.PD()
	}
	return d.PD.Native()
}

// region is a registered buffer.
type region struct {
	Addr int    `result:"addr,hex,varies" doc:"address of the first byte"`
	RKey uint32 `result:"rkey,hex,varies" doc:"key for the peer"`
	LKey uint32 `result:"lkey,hex,varies" doc:"key for own requests"`
}

func (r region) summary() string { return fmt.Sprintf("rkey %#x", r.RKey) }

// renewed is the region of a buffer after err, the result of its registration.
func renewed(call *Call, buffer *testbed.Buffer, err error) (region, error) {
	if err != nil {
		return region{}, err
	}
	call.Outcome.Buffers = []*testbed.Buffer{buffer}
	view := buffer.View()
	return region{view.Addr, uint32(view.RKey), uint32(view.LKey)}, nil
}

func register(_ context.Context, call *Call, args *struct {
	theBuffer
	Access optional[rdmacore.Access] `arg:"access" doc:"rights; without them those of the buffer"`
	inDomain
	Of   *testbed.Endpoint `arg:"of" doc:"the endpoint with the protection domain, as rdma_reg_msgs(3) takes it"`
	IOVA optional[int]     `arg:"iova" max:"0x7fffffffffffffff" doc:"the address by which requests name the first byte (ibv_reg_mr_iova(3))"`
}) (region, error) {
	access := args.Access.or(args.Buffer.Access())
	pd := args.domain(call)
	if args.Of != nil {
		if pd = args.Of.ID().PD(); pd == nil {
			return region{}, &testbed.Failure{
				What: args.Of.Name + " has no protection domain", Hint: "bind_addr or resolve_addr comes first",
				Errno: syscall.EINVAL,
			}
		}
	}
	if args.IOVA.Given {
		return renewed(call, args.Buffer, args.Buffer.RegisterAt(pd, uint64(args.IOVA.Value), access))
	}
	return renewed(call, args.Buffer, args.Buffer.RegisterIn(pd, access))
}

func reregister(_ context.Context, call *Call, args *struct {
	theBuffer
	Access optional[rdmacore.Access] `arg:"access" doc:"other rights"`
	PD     *testbed.Domain           `arg:"pd" doc:"another protection domain, of alloc_pd"`
	Offset optional[byteCount]       `arg:"offset" doc:"register another part of the buffer, from here"`
	Length optional[byteCount]       `arg:"length" doc:"likewise, the bytes from there; without it, to the end of the buffer"`
}) (region, error) {
	part := args.Offset.Given || args.Length.Given
	change := testbed.Change{
		Flags: flag(args.Access.Given, rdmacore.ReregAccess) | flag(args.PD != nil, rdmacore.ReregPD) | flag(
			part, rdmacore.ReregTranslation,
		),
		Access: args.Access.Value, Offset: int(args.Offset.Value),
	}
	if args.PD != nil {
		change.PD = args.PD.Native()
	}
	if part {
		change.Length = int(args.Length.or(byteCount(args.Buffer.Size()) - args.Offset.Value))
	}
	return renewed(call, args.Buffer, args.Buffer.Reregister(change))
}

// windowVerbs allocate memory windows and bind them, which is a work request.
var windowVerbs = []Verb{
	ask(
		"alloc_mw", "ibv_alloc_mw(3)", "Allocate a memory window, bound to nothing.", allocMW,
	).needing(CanWindow).making(
		Window,
	),
	ask("bind_mw", "ibv_bind_mw(3)",
		"Post a request to bind a window to a part of a buffer with the right MW_BIND; type 2 as "+
			"ibv_post_send(3) with BIND_MW.",
		bindMW).needing(CanWindow),
	act("dealloc_mw", "ibv_dealloc_mw(3)", "Free a memory window; its key ends.",
		func(_ context.Context, _ *Call, args *theWindow) error { return args.MW.Free() }).needing(CanWindow).scalar(
		"mw",
	),
	act("post_local_inv", "ibv_post_send(3)", "Post a request that ends a key: of a window of type 2 that the queue "+
		"pair has bound.",
		// invalidate of post_send ends a key of the peer instead
		func(_ context.Context, call *Call, args *struct {
			onlyQueuePair
			RKey uint32 `arg:"rkey,required" doc:"the key"`
			wrID
			requestFlags
		}) error {
			request := rdmacore.SendWR{
				WRID: args.WRID, Opcode: rdmacore.OpLocalInv, Flags: args.native(), ImmData: args.RKey,
			}
			return args.post(call, rdmacore.OpLocalInv, request, nil, 0)
		}).needing(CanWindow),
}

// theWindow is the argument of verbs that work on a window.
type theWindow struct {
	MW *testbed.Window `arg:"mw,required" doc:"the window, by the name that 'as' gave it"`
}

func allocMW(_ context.Context, call *Call, args *struct {
	inDomain
	Type uint8 `arg:"type" default:"1" doc:"1: valid for every queue pair of the domain. 2: valid for the one that binds it, and the peer can invalidate it"`
}) (result struct {
	RKey uint32 `result:"rkey,hex,varies" doc:"its key, not valid until bind_mw sets another"`
}, err error) {
	window, err := call.Role.NewWindow(args.domain(call), rdmacore.MWType(args.Type))
	if err != nil {
		return result, err
	}
	call.Outcome.Made = window
	result.RKey = window.Native().RKey()
	return result, nil
}

// boundWindow is the memory that a window gives access to.
type boundWindow struct {
	Addr   int    `result:"addr,hex,varies" doc:"address of the window's first byte"`
	RKey   uint32 `result:"rkey,hex,varies" doc:"key for the peer, valid once the request has completed"`
	Length int    `result:"length" doc:"its bytes"`
}

func (w boundWindow) summary() string { return fmt.Sprintf("rkey %#x", w.RKey) }

func bindMW(_ context.Context, call *Call, args *struct {
	onlyQueuePair
	theWindow
	Buffer *testbed.Buffer     `arg:"buffer" doc:"the buffer; without it the window, of type 1, is bound to nothing"`
	Offset byteCount           `arg:"offset" default:"0" doc:"where in the buffer"`
	Length optional[byteCount] `arg:"length" doc:"how many bytes; without it, to the end of the buffer"`
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
			return boundWindow{}, &testbed.Failure{
				What: fmt.Sprintf("buffer %q is not registered", s.buffer.Name), Hint: "reg registers it again",
			}
		}
	}
	if err := args.qp.BindMW(window.Native(), bind); err != nil {
		return boundWindow{}, err
	}
	window.FreeFirst() // it must go before the registration of the buffer and the queue pair
	args.posted(call, rdmacore.OpBindMW, bind.Flags, 0)
	return boundWindow{int(bind.Address), window.Native().RKey(), int(bind.Length)}, nil
}
