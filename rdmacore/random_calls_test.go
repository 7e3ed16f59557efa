package rdmacore

import (
	"net/netip"
	"slices"
	"time"

	"pgregory.net/rapid"
)

// maxIDs bounds what a round makes.
const maxIDs = 24

func (w *randomWorld) id(t *rapid.T) *ID { return rapid.SampledFrom(w.ids).Draw(t, "id") }

func (w *randomWorld) channel(t *rapid.T) *EventChannel {
	return rapid.SampledFrom(w.channels).Draw(t, "channel")
}

func (w *randomWorld) destination(t *rapid.T) netip.AddrPort {
	ports := []uint16{0, 1, 7471}
	for _, id := range w.ids {
		if id.Listening() {
			ports = append(ports, id.SrcPort(), id.SrcPort(), id.SrcPort())
		}
	}
	address := rapid.SampledFrom([]netip.Addr{w.address, w.address, w.address, w.address, {},
		netip.MustParseAddr("::1"), netip.IPv4Unspecified()}).Draw(t, "address")
	return netip.AddrPortFrom(address, rapid.SampledFrom(ports).Draw(t, "port"))
}

func (w *randomWorld) param(t *rapid.T) *ConnParam {
	if rapid.Bool().Draw(t, "default") {
		return nil
	}
	return &ConnParam{ResponderResources: rapid.Uint8().Draw(t, "resources"), InitiatorDepth: rapid.Uint8().Draw(
		t, "depth",
	),
		RetryCount: 7, RNRRetryCount: rapid.Uint8().Draw(t, "rnr"), QPNum: rapid.Uint32Range(0, 99).Draw(t, "qpn"),
		PrivateData: make([]byte, rapid.SampledFrom([]int{0, 1, 56, 57, 148, 196, 255, 300}).Draw(t, "private"))}
}

func (w *randomWorld) qp(t *rapid.T) QPInitAttr {
	attr := QPInitAttr{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1,
		Type: rapid.SampledFrom([]QPType{0, 0, 0, QPTypeRC, QPTypeUD, 77}).Draw(t, "type")}
	attr.SendOps = rapid.SampledFrom([]SendOps{0, 0, 0, SendOpSend, SendOpRDMARead | SendOpFlush, 1 << 40}).Draw(
		t, "send ops",
	)
	if rapid.IntRange(0, 3).Draw(t, "srq") == 0 {
		attr.SRQ = w.id(t).SRQ()
	}
	if rapid.IntRange(0, 3).Draw(t, "cqs") == 0 {
		attr.SendCQ = rapid.SampledFrom(w.cqs).Draw(t, "send cq")
		attr.RecvCQ = rapid.SampledFrom(w.cqs).Draw(t, "recv cq")
	}
	return attr
}

func (w *randomWorld) made(t *rapid.T, id *ID, err error) {
	if w.note(t, err) {
		w.ids = append(w.ids, id)
	}
}

func (w *randomWorld) space(t *rapid.T) PortSpace {
	return rapid.SampledFrom([]PortSpace{PortSpaceTCP, PortSpaceTCP, PortSpaceTCP, PortSpaceUDP, PortSpaceIB, 3}).Draw(
		t, "space",
	)
}

func (w *randomWorld) endpoint(t *rapid.T) EPConfig {
	config := EPConfig{Passive: rapid.Bool().Draw(t, "passive"), PortSpace: w.space(t),
		PD: rapid.SampledFrom(w.pds).Draw(t, "pd"), Timeout: 10 * time.Millisecond}
	if config.Passive {
		config.Source = netip.AddrPortFrom(w.address, 0)
	} else {
		config.Destination = w.destination(t)
	}
	if rapid.Bool().Draw(t, "with QP") {
		attr := w.qp(t)
		config.QP = &attr
	}
	return config
}

// actions are all functions of the connection manager.
func (w *randomWorld) actions() map[string]func(*rapid.T) {
	on := func(call func(*rapid.T, *ID) error) func(*rapid.T) {
		return func(t *rapid.T) { w.note(t, call(t, w.id(t))) }
	}
	few := func(make func(*rapid.T)) func(*rapid.T) {
		return func(t *rapid.T) {
			if len(w.ids) > maxIDs {
				t.Skip("enough ids")
			}
			make(t)
		}
	}
	group := netip.MustParseAddr("239.1.2.3")
	return map[string]func(*rapid.T){
		"create id": few(func(t *rapid.T) {
			id, err := w.channel(t).CreateID(w.space(t))
			w.made(t, id, err)
		}),
		"create synchronous id": few(func(t *rapid.T) { id, err := w.p.CreateID(w.space(t)); w.made(t, id, err) }),
		"create ep": few(func(t *rapid.T) {
			channel := w.channel(t)
			ctx, cancel := w.soon(channel)
			defer cancel()
			id, err := channel.CreateEP(ctx, w.endpoint(t))
			w.made(t, id, err)
		}),
		"create synchronous ep": few(func(t *rapid.T) {
			ctx, cancel := w.soon(nil)
			defer cancel()
			id, err := w.p.CreateEP(ctx, w.endpoint(t))
			w.made(t, id, err)
		}),
		"bind": on(func(t *rapid.T, id *ID) error { return id.BindAddr(w.destination(t)) }),
		"resolve addr": on(func(t *rapid.T, id *ID) error {
			return id.ResolveAddr(netip.AddrPort{}, w.destination(t), time.Millisecond)
		}),
		"resolve route": on(func(t *rapid.T, id *ID) error { return id.ResolveRoute(time.Millisecond) }),
		"listen": on(func(t *rapid.T, id *ID) error {
			return id.Listen(rapid.IntRange(-1, 3).Draw(t, "backlog"))
		}),
		"create qp": on(func(t *rapid.T, id *ID) error {
			return id.CreateQP(rapid.SampledFrom(w.pds).Draw(t, "pd"), w.qp(t))
		}),
		"create qp ex": on(func(t *rapid.T, id *ID) error {
			return id.CreateQPEx(rapid.SampledFrom(w.pds).Draw(t, "pd"), QPInitAttrEx{QPInitAttr: w.qp(t)})
		}),
		"create srq": on(func(t *rapid.T, id *ID) error {
			return id.CreateSRQ(rapid.SampledFrom(w.pds).Draw(t, "pd"), SRQAttr{MaxWR: 4, MaxSGE: 1})
		}),
		"destroy srq": on(func(t *rapid.T, id *ID) error { return id.DestroySRQ() }),
		"destroy qp":  on(func(t *rapid.T, id *ID) error { return id.DestroyQP() }),
		"connect":     on(func(t *rapid.T, id *ID) error { return id.Connect(w.param(t)) }),
		"accept":      on(func(t *rapid.T, id *ID) error { return id.Accept(w.param(t)) }),
		"reject": on(func(t *rapid.T, id *ID) error {
			return id.Reject(make([]byte, rapid.IntRange(0, 256).Draw(t, "private")))
		}),
		"reject ece": on(func(t *rapid.T, id *ID) error { return id.RejectECE(nil) }),
		"establish":  on(func(t *rapid.T, id *ID) error { return id.Establish() }),
		"disconnect": on(func(t *rapid.T, id *ID) error { return id.Disconnect() }),
		"notify": on(func(t *rapid.T, id *ID) error {
			return id.Notify(AsyncEventType(rapid.IntRange(0, 12).Draw(t, "event")))
		}),
		"local ece": on(func(t *rapid.T, id *ID) error {
			return id.SetLocalECE(ECE{VendorID: rapid.Uint32Range(0, 1).Draw(t, "vendor")})
		}),
		"remote ece":  on(func(t *rapid.T, id *ID) error { _, err := id.GetRemoteECE(); return err }),
		"write event": on(func(t *rapid.T, id *ID) error { return id.WriteEvent(0, 1) }),
		"init qp attr": on(func(t *rapid.T, id *ID) error {
			_, _, err := id.InitQPAttr(QPState(rapid.IntRange(-1, 8).Draw(t, "state")))
			return err
		}),
		"set option": on(func(t *rapid.T, id *ID) error {
			return id.SetOption(OptionLevel(rapid.IntRange(-1, 2).Draw(t, "level")), IDOption(
				rapid.IntRange(-1, 4).Draw(t, "option"),
			),
				make([]byte, rapid.SampledFrom([]int{0, 1, 4}).Draw(t, "length")))
		}),
		"set path": on(func(t *rapid.T, id *ID) error {
			path, err := id.RoutePath()
			if err != nil {
				return err
			}
			return id.SetIBPath(path)
		}),
		"join": on(func(t *rapid.T, id *ID) error { return id.JoinMulticast(group, 1) }),
		"join ex": on(func(t *rapid.T, id *ID) error {
			return id.JoinMulticastEx(group, JoinFlags(rapid.IntRange(-1, 2).Draw(t, "flags")), 1)
		}),
		"leave":      on(func(t *rapid.T, id *ID) error { return id.LeaveMulticast(group) }),
		"migrate":    on(func(t *rapid.T, id *ID) error { return id.MigrateID(w.channel(t)) }),
		"addr info":  on(func(t *rapid.T, id *ID) error { return id.ResolveAddrInfo(w.address.String(), "1", nil) }),
		"query":      on(func(t *rapid.T, id *ID) error { _, err := id.QueryAddrInfo(); return err }),
		"destroy":    on(func(t *rapid.T, id *ID) error { return id.Destroy() }),
		"destroy ep": on(func(t *rapid.T, id *ID) error { return id.DestroyEP() }),
		"complete": on(func(t *rapid.T, id *ID) error {
			ctx, cancel := w.soon(id.Channel())
			defer cancel()
			return id.Complete(ctx)
		}),
		"get request": few(func(t *rapid.T) {
			listener := w.id(t)
			ctx, cancel := w.soon(listener.Channel())
			defer cancel()
			id, err := listener.GetRequest(ctx)
			w.made(t, id, err)
		}),
		"register": func(t *rapid.T) {
			mr, err := w.id(t).PD().RegMR(w.memory, 0, 64, AccessLocalWrite|AccessRemoteWrite)
			if w.note(t, err) {
				w.note(t, mr.Rereg(ReregFlags(rapid.IntRange(-1, 8).Draw(t, "changes")), rapid.SampledFrom(w.pds).Draw(
					t, "pd",
				),
					w.memory, 0, rapid.SampledFrom([]int{-1, 0, 64, 1 << 30}).Draw(t, "length"),
					Access(rapid.Uint32Range(0, 15).Draw(t, "access"))))
				w.note(t, mr.Dereg())
			}
		},
		"post": on(func(t *rapid.T, id *ID) error {
			_, err := id.QP().PostSend([]SendWR{{WRID: 1, Opcode: OpSend, Flags: SendSignaled}}, nil)
			return err
		}),
		"post recv": on(func(t *rapid.T, id *ID) error {
			_, err := id.QP().PostRecv([]RecvWR{{WRID: 1}}, nil)
			return err
		}),
		"completion": on(func(t *rapid.T, id *ID) error {
			ctx, cancel := w.soon(id.Channel())
			defer cancel()
			_, err := id.SendCQ().Wait(ctx, make([]WC, 1))
			return err
		}),
		"events": w.readEvents, "events again": w.readEvents, "wait": w.waitEvent, "": w.look,
		"converse": few(w.converse), "converse again": few(w.converse), "answer": w.answer, "answer again": w.answer,
		"hang up": w.hangUp, "hang up again": w.hangUp,
		"hold": func(t *rapid.T) { w.note(t, w.channel(t).HoldEvents(rapid.Bool().Draw(t, "hold"))) },
		"ack":  func(t *rapid.T) { w.note(t, rapid.SampledFrom(w.events).Draw(t, "event").Ack()) },
		"close": func(t *rapid.T) {
			if channel := w.channel(t); channel != nil && rapid.IntRange(0, 9).Draw(t, "really") == 0 {
				w.note(t, channel.Close())
			}
		},
	}
}

func (w *randomWorld) readEvents(t *rapid.T) {
	channel := w.channel(t)
	if channel == nil {
		return
	}
	events, err := channel.Pending()
	w.note(t, err)
	for _, event := range events {
		w.seen(t, event)
	}
}

func (w *randomWorld) waitEvent(t *rapid.T) {
	id := w.id(t)
	ctx, cancel := w.soon(id.Channel())
	defer cancel()
	event, err := id.Channel().Wait(ctx, id)
	w.note(t, err)
	w.seen(t, event)
}

// converse begins what other calls go on with: a listener and a client that asks it, of either kind.
func (w *randomWorld) converse(t *rapid.T) {
	attr := QPInitAttr{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1}
	make := func(config EPConfig) *ID {
		config.QP = &attr
		ctx, cancel := w.soon(nil)
		defer cancel()
		var id *ID
		var err error
		if channel := w.channels[1]; channel.open() && rapid.Bool().Draw(t, "on a channel") {
			id, err = channel.CreateEP(ctx, config)
		} else {
			id, err = w.p.CreateEP(ctx, config)
		}
		w.made(t, id, err)
		return id
	}
	listener := make(EPConfig{Passive: true, Source: netip.AddrPortFrom(w.address, 0)})
	w.note(t, listener.Listen(0))
	client := make(EPConfig{Destination: listener.LocalAddr()})
	w.note(t, client.Connect(nil))
	w.requested = append(w.requested, listener)
}

// answer takes a request of one of those, and accepts it.
func (w *randomWorld) answer(t *rapid.T) {
	if len(w.requested) == 0 {
		return
	}
	listener := w.requested[0]
	w.requested = w.requested[1:]
	ctx, cancel := w.soon(listener.Channel())
	defer cancel()
	var child *ID
	if listener.Synchronous() {
		id, err := listener.GetRequest(ctx)
		w.made(t, id, err)
		child = id
	} else if event, err := listener.Channel().Wait(ctx, listener); w.note(t, err) {
		w.seen(t, event)
		child = event.ID
	}
	w.note(t, child.Accept(nil))
}

// hangUp ends a connection at both ends, or at those that are left.
func (w *randomWorld) hangUp(t *rapid.T) {
	for _, id := range w.ids {
		if id.open() && id.QP() != nil && !id.Listening() {
			w.note(t, id.Disconnect())
		}
	}
	w.readEvents(t)
}

// look runs after every call: what can be asked without one has an answer.
func (w *randomWorld) look(t *rapid.T) {
	for _, id := range w.ids {
		if id.Event() != nil && !id.Synchronous() {
			t.Fatal("an id on a channel keeps an event")
		}
		id.LocalAddr()
		id.PeerAddr()
		if qp := id.QP(); qp != nil {
			attr, err := qp.Query()
			if w.note(t, err) &&
				!slices.ContainsFunc(qpStateNames.rows, func(row named[QPState]) bool {
					return row.value == attr.State
				}) {
				t.Fatalf("a QP in state %d", attr.State)
			}
		}
	}
}
