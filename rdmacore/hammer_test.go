package rdmacore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
)

// TestHammer makes and breaks many connections at once. Clients with channels of their own connect to one listener.
// Its children all share one channel, and a goroutine serves each.
func TestHammer(t *testing.T) {
	const clients, connections = 8, 25
	p := opened(t)
	before := p.Live().String()
	channel, err := p.CreateEventChannel()
	must(t, err)
	listener, err := channel.CreateEP(bounded(t), EPConfig{Passive: true, Source: here(t, 0), QP: &usualQP})
	must(t, err)
	must(t, listener.Listen(0))
	ctx := bounded(t)
	var all sync.WaitGroup
	run := func(what string, work func() error) {
		all.Add(1)
		go func() {
			defer all.Done()
			if err := work(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}()
	}
	run("listener", func() error {
		for range clients * connections {
			event, err := channel.Wait(ctx, listener)
			if err != nil {
				return err
			}
			run("server", func() error { return serve(ctx, event.ID) })
		}
		return nil
	})
	for range clients {
		run("client", func() error {
			for range connections {
				if err := visit(ctx, p, listener); err != nil {
					return err
				}
			}
			return nil
		})
	}
	all.Wait()
	must(t, listener.Destroy())
	must(t, channel.Close())
	if after := p.Live().String(); after != before {
		t.Errorf("alive before %s, after %s", before, after)
	}
}

// serve accepts a connection and ends with it.
func serve(ctx context.Context, id *ID) error {
	if err := id.Accept(&usualParam); err != nil {
		return err
	}
	// Where messages may overtake each other, as on any network, the end can come before the beginning.
	for event := (&Event{}); event.Type != EventDisconnected; {
		var err error
		if event, err = id.Channel().Wait(ctx, id); err != nil {
			return err
		}
		if event.Status != 0 || event.Type != EventEstablished && event.Type != EventDisconnected {
			return fmt.Errorf("event %s with status %d", event.Type, event.Status)
		}
	}
	return errors.Join(id.Disconnect(), id.DestroyEP())
}

// visit connects, waits for a write of no bytes, and leaves.
func visit(ctx context.Context, p *Provider, listener *ID) error {
	channel, err := p.CreateEventChannel()
	if err != nil {
		return err
	}
	id, err := channel.CreateEP(ctx, EPConfig{Destination: listener.LocalAddr(), QP: &usualQP})
	if err != nil {
		return errors.Join(err, channel.Close())
	}
	err = func() error {
		if err := id.Connect(&usualParam); err != nil {
			return err
		}
		if err := await(ctx, id, EventEstablished); err != nil {
			return err
		}
		wr := SendWR{WRID: 1, Opcode: OpRDMAWrite, Flags: SendSignaled}
		if _, err := id.QP().PostSend([]SendWR{wr}, nil); err != nil {
			return err
		}
		var wcs [1]WC
		if _, err := id.SendCQ().Wait(ctx, wcs[:]); err != nil {
			return err
		}
		if wcs[0].WRID != 1 {
			return fmt.Errorf("completion %+v", wcs[0])
		}
		if err := id.Disconnect(); err != nil {
			return err
		}
		return await(ctx, id, EventDisconnected)
	}()
	return errors.Join(err, id.DestroyEP(), channel.Close())
}

func await(ctx context.Context, id *ID, want EventType) error {
	event, err := id.Channel().Wait(ctx, id)
	if err != nil {
		return fmt.Errorf("%s: %w", want, err)
	}
	if event.Type != want || event.Status != 0 {
		return fmt.Errorf("event %s with status %d, want %s", event.Type, event.Status, want)
	}
	return nil
}
