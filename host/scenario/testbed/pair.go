package testbed

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"rdmarun/host/scenario/quantity"
	"rdmarun/rdmacore"
)

// Pair is a connection between two roles, with memory at both ends, that no step sees: the native loops of a
// measurement work on it.  A role that another process plays has the other half of the pair there.
type Pair struct {
	Active, Passive PairEnd
	listener        *rdmacore.ID
	frees           []func() error // in the order of making
}

// PairEnd is one end of a pair.
type PairEnd struct {
	ID *rdmacore.ID
	MR *rdmacore.MR
	pd *rdmacore.PD
	qp rdmacore.QPInitAttr
}

// PairConfig is what a pair is made of.
type PairConfig struct {
	QP rdmacore.QPInitAttr
	// FitInline takes less inline data than QP.MaxInlineData from a device that has less.
	FitInline bool
	Bytes     int // of memory, each end
	Access    rdmacore.Access
}

// pairTimeout bounds each wait for the connection manager, on the provider's clock.
const pairTimeout = 10 * time.Second

// everything asks for all READs and atomics that the devices can have under way at once.
var everything = rdmacore.ConnParam{ResponderResources: 255, InitiatorDepth: 255, RetryCount: 7, RNRRetryCount: 7}

// NewPair connects two roles.  It does not touch the testbed and needs no lock.  On failure nothing is left behind.
func NewPair(ctx context.Context, from, to *Role, config PairConfig) (*Pair, error) {
	p := &Pair{}
	return p.cleanUpOnError(func() error {
		if err := p.listen(ctx, to, config); err != nil {
			return err
		}
		if err := p.ask(ctx, from, p.Listens(), config); err != nil {
			return err
		}
		if err := p.answer(ctx); err != nil {
			return err
		}
		return errors.Join(established(ctx, p.Active.ID), established(ctx, p.Passive.ID))
	})
}

// ListenPair makes the half that waits for the other one.
func ListenPair(ctx context.Context, to *Role, config PairConfig) (*Pair, error) {
	p := &Pair{}
	return p.cleanUpOnError(func() error { return p.listen(ctx, to, config) })
}

// Listens is where the passive end of a pair waits.
func (p *Pair) Listens() netip.AddrPort { return p.listener.LocalAddr() }

// Accept waits for the other half, and connects to it.
func (p *Pair) Accept(ctx context.Context) error {
	if err := p.answer(ctx); err != nil {
		return err
	}
	return established(ctx, p.Passive.ID)
}

// DialPair makes the half that connects to another one.
func DialPair(ctx context.Context, from *Role, to netip.AddrPort, config PairConfig) (*Pair, error) {
	p := &Pair{}
	return p.cleanUpOnError(func() error {
		if err := p.ask(ctx, from, to, config); err != nil {
			return err
		}
		return established(ctx, p.Active.ID)
	})
}

// cleanUpOnError is the pair that is made, or what became of it, with nothing left behind.
func (p *Pair) cleanUpOnError(make func() error) (*Pair, error) {
	if err := make(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// onClose gives the pair something to free.
func (p *Pair) onClose(free func() error) { p.frees = append(p.frees, free) }

func (p *Pair) listen(ctx context.Context, to *Role, config PairConfig) error {
	passive, err := p.prepare(&p.Passive, to, config)
	if err != nil {
		return err
	}
	p.listener, err = passive.CreateEP(ctx, rdmacore.EPConfig{
		Passive: true, Source: netip.AddrPortFrom(to.address, 0), PD: p.Passive.pd, QP: &p.Passive.qp,
	})
	if err != nil {
		return err
	}
	p.onClose(p.listener.DestroyEP)
	return p.listener.Listen(1)
}

func (p *Pair) ask(ctx context.Context, from *Role, to netip.AddrPort, config PairConfig) error {
	active, err := p.prepare(&p.Active, from, config)
	if err != nil {
		return err
	}
	p.Active.ID, err = active.CreateEP(ctx, rdmacore.EPConfig{
		Source: from.Source(to.Addr()), Destination: to, PD: p.Active.pd, QP: &p.Active.qp,
	})
	if err != nil {
		return err
	}
	p.onClose(p.Active.ID.DestroyEP)
	return p.Active.ID.Connect(&everything)
}

func (p *Pair) answer(ctx context.Context) error {
	event, err := expect(ctx, p.listener, rdmacore.EventConnectRequest)
	if err != nil {
		return err
	}
	p.Passive.ID = event.ID
	p.onClose(p.Passive.ID.DestroyEP)
	return p.Passive.ID.Accept(&everything)
}

func established(ctx context.Context, id *rdmacore.ID) error {
	_, err := expect(ctx, id, rdmacore.EventEstablished)
	return err
}

// prepare makes what an end needs before it connects, and returns its event channel.
func (p *Pair) prepare(e *PairEnd, role *Role, config PairConfig) (*rdmacore.EventChannel, error) {
	channel, err := role.provider.CreateEventChannel()
	if err != nil {
		return nil, err
	}
	p.onClose(channel.Close)
	if e.pd, err = role.device.AllocPD(); err != nil {
		return nil, err
	}
	p.onClose(e.pd.Dealloc)
	if e.qp = config.QP; config.FitInline {
		if err = e.fitInline(channel, role.address); err != nil {
			return nil, err
		}
	}
	memory, err := rdmacore.NewMemory(config.Bytes)
	if err != nil {
		return nil, err
	}
	defer memory.Release() // the registration holds it until it is gone itself
	if e.MR, err = e.pd.RegMR(memory, 0, config.Bytes, config.Access); err != nil {
		return nil, err
	}
	p.onClose(e.MR.Dereg)
	return channel, nil
}

// leastInline is where asking for less inline data ends: iWARP's control messages need it (rdmacore/measure/wire.h).
const leastInline = 12

// fitInline finds how much inline data the device takes, by unconnected queue pairs: it has no such attribute.
func (e *PairEnd) fitInline(channel *rdmacore.EventChannel, address netip.Addr) error {
	id, err := channel.CreateID(rdmacore.PortSpaceTCP)
	if err != nil {
		return err
	}
	if err = id.BindAddr(netip.AddrPortFrom(address, 0)); err == nil {
		err = id.CreateQP(e.pd, e.qp)
		for errors.Is(err, syscall.EINVAL) && e.qp.MaxInlineData >= 2*leastInline {
			e.qp.MaxInlineData /= 2
			err = id.CreateQP(e.pd, e.qp)
		}
	}
	return errors.Join(err, id.DestroyEP())
}

// Source is where connections of the role to an address begin, any port: at its own device.  It is zero where that is
// of another family, and the routes decide.
func (r *Role) Source(to netip.Addr) netip.AddrPort {
	if r.address.Is4() != to.Is4() {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(r.address, 0)
}

// expect waits for the next event of an id, which must be this one.
func expect(ctx context.Context, id *rdmacore.ID, want rdmacore.EventType) (*rdmacore.Event, error) {
	waiting, cancel := id.Channel().Provider().Clock().WithTimeout(ctx, pairTimeout)
	defer cancel()
	event, err := id.Channel().Wait(waiting, id)
	switch {
	case err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return nil, &Failure{
			What: "the ends cannot connect", Expected: want.String(),
			Got: "nothing within " + quantity.Time(pairTimeout), Late: true,
		}
	case err != nil:
		return nil, err
	case event.Type != want:
		return nil, &Failure{
			What: "the ends cannot connect", Expected: want.String(),
			Got: fmt.Sprintf(
				"%s with status %s", event.Type, rdmacore.StatusString(event.Type, event.Status, rdmacore.PortSpaceTCP),
			),
		}
	}
	return event, nil
}

// Close disconnects and frees everything, also of a pair that was half made.
func (p *Pair) Close() error {
	for _, end := range []*PairEnd{&p.Active, &p.Passive} {
		if end.ID != nil {
			_ = end.ID.Disconnect() // an error means that it is disconnected already
		}
	}
	var failures []error
	for _, free := range slices.Backward(p.frees) {
		failures = append(failures, free())
	}
	return errors.Join(failures...)
}
