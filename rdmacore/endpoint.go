package rdmacore

import (
	"context"
	"errors"
	"net/netip"
	"syscall"
	"time"
)

// EPConfig says what CreateEP makes.
type EPConfig struct {
	Passive     bool
	PortSpace   PortSpace      // 0 is PortSpaceTCP
	Source      netip.AddrPort // passive: where to listen; active: may be zero
	Destination netip.AddrPort // active
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
	if cfg.PortSpace == 0 {
		cfg.PortSpace = PortSpaceTCP
	}
	id, err := c.CreateID(cfg.PortSpace)
	if err != nil {
		return nil, err
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
	if cfg.QP != nil {
		attr := *cfg.QP
		id.childPD, id.childQP = cfg.PD, &attr
	}
	return nil
}

func (id *ID) prepareActive(ctx context.Context, cfg EPConfig) error {
	timeout := cfg.Timeout
	if timeout <= 0 {
		timeout = 2 * time.Second
	}
	if err := id.ResolveAddr(cfg.Source, cfg.Destination, timeout); err != nil {
		return err
	}
	if err := id.expect(ctx, EventAddrResolved, timeout); err != nil {
		return err
	}
	if err := id.ResolveRoute(timeout); err != nil {
		return err
	}
	if err := id.expect(ctx, EventRouteResolved, timeout); err != nil {
		return err
	}
	if cfg.QP == nil {
		return nil
	}
	return id.CreateQP(cfg.PD, *cfg.QP)
}

// expect waits for the end of a resolution.
func (id *ID) expect(ctx context.Context, want EventType, timeout time.Duration) error {
	const op = "rdma_create_ep"
	ctx, cancel := id.channel.provider.clock.WithTimeout(ctx, timeout+resolveGrace)
	defer cancel()
	event, err := id.channel.Wait(ctx, id)
	if err != nil {
		return err
	}
	if err := event.Err(); err != nil {
		return &resolveError{op: op, peer: id.PeerAddr(), err: err}
	}
	if event.Type != want {
		return fail(op, syscall.EPROTO, "%s came in place of %s", event.Type, want)
	}
	return nil
}

// resolveError says whose address or route could not be resolved.
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
