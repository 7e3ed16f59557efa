package testbed

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"rdmarun/host/scenario/quantity"
	"rdmarun/rdmacore"
)

// Pair is a connection between two roles, with memory at both ends, that no step sees: the native loops of a
// measurement work on it.
type Pair struct {
	Active, Passive PairEnd
	frees           []func() error // in the order of making
}

// PairEnd is one end of a pair.
type PairEnd struct {
	ID *rdmacore.ID
	MR *rdmacore.MR
	pd *rdmacore.PD
}

// PairConfig is what a pair is made of.
type PairConfig struct {
	QP     rdmacore.QPInitAttr
	Bytes  int // of memory, each end
	Access rdmacore.Access
}

// pairTimeout bounds each wait for the connection manager, on the provider's clock.
const pairTimeout = 10 * time.Second

// everything asks for all READs and atomics that the devices can have under way at once.
var everything = rdmacore.ConnParam{ResponderResources: 255, InitiatorDepth: 255, RetryCount: 7, RNRRetryCount: 7}

// NewPair connects two roles.  It does not touch the testbed and needs no lock.  On failure nothing is left behind.
func NewPair(ctx context.Context, from, to *Role, config PairConfig) (*Pair, error) {
	p := &Pair{}
	if err := p.connect(ctx, from, to, config); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// own gives the pair something to free.
func (p *Pair) own(free func() error) { p.frees = append(p.frees, free) }

func (p *Pair) connect(ctx context.Context, from, to *Role, config PairConfig) error {
	active, err := p.prepare(&p.Active, from, config)
	if err != nil {
		return err
	}
	passive, err := p.prepare(&p.Passive, to, config)
	if err != nil {
		return err
	}
	listener, err := passive.CreateEP(ctx, rdmacore.EPConfig{
		Passive: true, Source: netip.AddrPortFrom(to.address, 0), PD: p.Passive.pd, QP: &config.QP,
	})
	if err != nil {
		return err
	}
	p.own(listener.DestroyEP)
	if err = listener.Listen(1); err != nil {
		return err
	}
	p.Active.ID, err = active.CreateEP(ctx, rdmacore.EPConfig{
		Source: from.Source(to), Destination: listener.LocalAddr(), PD: p.Active.pd, QP: &config.QP,
	})
	if err != nil {
		return err
	}
	p.own(p.Active.ID.DestroyEP)
	if err = p.Active.ID.Connect(&everything); err != nil {
		return err
	}
	event, err := expect(ctx, listener, rdmacore.EventConnectRequest)
	if err != nil {
		return err
	}
	p.Passive.ID = event.ID
	p.own(p.Passive.ID.DestroyEP)
	if err = p.Passive.ID.Accept(&everything); err != nil {
		return err
	}
	for _, end := range []*PairEnd{&p.Active, &p.Passive} {
		if _, err = expect(ctx, end.ID, rdmacore.EventEstablished); err != nil {
			return err
		}
	}
	return nil
}

// prepare makes what an end needs before it connects, and returns its event channel.
func (p *Pair) prepare(e *PairEnd, role *Role, config PairConfig) (*rdmacore.EventChannel, error) {
	channel, err := role.provider.CreateEventChannel()
	if err != nil {
		return nil, err
	}
	p.own(channel.Close)
	if e.pd, err = role.device.AllocPD(); err != nil {
		return nil, err
	}
	p.own(e.pd.Dealloc)
	memory, err := rdmacore.NewMemory(config.Bytes)
	if err != nil {
		return nil, err
	}
	defer memory.Release() // the registration holds it until it is gone itself
	if e.MR, err = e.pd.RegMR(memory, 0, config.Bytes, config.Access); err != nil {
		return nil, err
	}
	p.own(e.MR.Dereg)
	return channel, nil
}

// Source is where connections of the role to another begin, any port: at its own device.  It is zero where the
// two have addresses of different families, and the routes decide.
func (r *Role) Source(to *Role) netip.AddrPort {
	if r.address.Is4() != to.address.Is4() {
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
		return nil, &Failure{What: "the ends cannot connect", Expected: want.String(), Got: "nothing within " + quantity.Time(pairTimeout)}
	case err != nil:
		return nil, err
	case event.Type != want:
		return nil, &Failure{
			What: "the ends cannot connect", Expected: want.String(),
			Got: fmt.Sprintf("%s with status %s", event.Type, rdmacore.StatusString(event.Type, event.Status, rdmacore.PortSpaceTCP)),
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
