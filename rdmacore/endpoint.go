package rdmacore

import (
	"context"
	"errors"
	"net/netip"
	"syscall"
	"time"
)

// EPConfig describes what CreateEP makes (struct rdma_addrinfo and the arguments of rdma_create_ep(3)).
type EPConfig struct {
	Passive     bool
	PortSpace   PortSpace      // 0 is PortSpaceTCP
	QPType      QPType         // of the QP; 0: that of QP.Type, or of the port space
	Source      netip.AddrPort // passive: where to listen; active: may be zero
	Destination netip.AddrPort // active
	Route       []byte         // active: path records that spare resolving the route (SetIBPath)
	Connect     []byte         // active: what goes before the private data of the first Connect
	PD          *PD            // nil: the device's default
	QP          *QPInitAttr    // nil: no QP; passive: what each child's QP is made of
	Timeout     time.Duration  // for the address and the route each; 0 is 2 s, as in rdma_create_ep(3)
}

// resolveGrace is how much longer than the resolver's own timeout CreateEP waits for its event.
const resolveGrace = 5 * time.Second

// CreateEP makes an id that is ready to listen (passive) or to connect (active), as rdma_create_ep(3)
// does, but asynchronous and cancellable.  On failure nothing is left behind.
func (c *EventChannel) CreateEP(ctx context.Context, cfg EPConfig) (*ID, error) {
	if !c.open() {
		return nil, closed("rdma_create_ep", "event channel")
	}
	id, err := c.CreateID(cfg.portSpace())
	if err != nil {
		return nil, err
	}
	return id.prepare(ctx, cfg)
}

// CreateEP creates a synchronous id that is ready to listen (passive) or to connect (active), like rdma_create_ep(3).
// It executes the steps of that function one by one, so that each can be cancelled. On failure nothing is left behind.
func (p *Provider) CreateEP(ctx context.Context, cfg EPConfig) (*ID, error) {
	id, err := p.CreateID(cfg.portSpace())
	if err != nil {
		return nil, err
	}
	return id.prepare(ctx, cfg)
}

func (cfg *EPConfig) portSpace() PortSpace {
	if cfg.PortSpace == 0 {
		return PortSpaceTCP
	}
	return cfg.PortSpace
}

func (id *ID) prepare(ctx context.Context, cfg EPConfig) (_ *ID, err error) {
	if cfg.QP != nil {
		attr := *cfg.QP
		if cfg.QPType != 0 {
			attr.Type = cfg.QPType
		}
		cfg.QP = &attr
	}
	if cfg.Passive {
		err = id.preparePassive(cfg)
	} else {
		err = id.prepareActive(ctx, cfg)
	}
	if err != nil {
		if undo := id.DestroyEP(); undo != nil {
			return nil, errors.Join(err, undo)
		}
		return nil, err
	}
	return id, nil
}

func (id *ID) preparePassive(cfg EPConfig) error {
	if err := id.BindAddr(cfg.Source); err != nil {
		return err
	}
	id.pd, id.childPD, id.childQP = cfg.PD, cfg.PD, cfg.QP
	return nil
}

func (id *ID) prepareActive(ctx context.Context, cfg EPConfig) error {
	timeout := cfg.Timeout
	if timeout <= 0 {
		timeout = 2 * time.Second
	}
	err := id.ResolveAddr(cfg.Source, cfg.Destination, timeout)
	if err := id.step(ctx, err, EventAddrResolved, timeout); err != nil {
		return err
	}
	if len(cfg.Route) != 0 {
		err = id.SetIBPath(cfg.Route)
	} else {
		err = id.ResolveRoute(timeout)
	}
	if err := id.step(ctx, err, EventRouteResolved, timeout); err != nil {
		return err
	}
	id.connectData = cfg.Connect
	if cfg.QP == nil {
		return nil
	}
	return id.CreateQP(cfg.PD, *cfg.QP)
}

// step waits for the end of a resolution that has been started, if it has.
func (id *ID) step(ctx context.Context, started error, want EventType, timeout time.Duration) error {
	const op = "rdma_create_ep"
	if started != nil {
		return started
	}
	ctx, cancel := id.channel.provider.clock.WithTimeout(ctx, timeout+resolveGrace)
	defer cancel()
	if id.synchronous {
		err := id.Complete(ctx)
		if event := id.Event(); err != nil && event != nil && event.Err() != nil {
			return &resolveError{op: op, peer: id.PeerAddr(), err: event.Err()}
		}
		return err
	}
	event, err := id.channel.Wait(ctx, id)
	if err != nil {
		return err
	}
	if event.Held() { // the caller does not get the event
		event.Ack()
	}
	if err := event.Err(); err != nil {
		return &resolveError{op: op, peer: id.PeerAddr(), err: err}
	}
	if event.Type != want {
		return fail(op, syscall.EPROTO, "%s came in place of %s", event.Type, want)
	}
	return nil
}

// resolveError names the address or route that could not be resolved.
type resolveError struct {
	op   string
	peer netip.AddrPort
	err  error
}

func (e *resolveError) Error() string {
	return e.op + ": " + e.peer.String() + ": " + e.err.Error() +
		"; is the host up, and on an RDMA network?"
}

func (e *resolveError) Unwrap() error { return e.err }
