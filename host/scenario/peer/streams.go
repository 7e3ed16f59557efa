package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"rdmarun/host/guest"
	"rdmarun/host/scenario/meeting"
)

// CarryStreams connects the streams of the guests here with those of guests in other processes, until stop.  stop sends
// the frames that the guests have written before.
func CarryStreams(mailbox Mailbox, exchange *guest.Exchange, processes []string) (stop func()) {
	s := &streams{mailbox: mailbox, exchange: exchange, sent: make(map[string]int)}
	ctx, cancel := context.WithCancel(context.Background())
	taken, given := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(taken)
		s.take(ctx, processes)
	}()
	go func() {
		defer close(given)
		s.give(ctx)
	}()
	return func() {
		cancel()
		<-taken
		<-given
		s.send() // frames from the ends of the guests
	}
}

// streams carries the frames of an exchange.
type streams struct {
	mailbox  Mailbox
	exchange *guest.Exchange
	sent     map[string]int // to each process; that of give, and of stop when give has ended
}

func (s *streams) key(from, to string, number int) string {
	return fmt.Sprintf("stream/%s>%s/%d", from, to, number)
}

// give sends frames whenever there are some.
func (s *streams) give(ctx context.Context) {
	for {
		more := s.send()
		select {
		case <-more:
		case <-ctx.Done():
			return
		}
	}
}

func (s *streams) send() (more <-chan struct{}) {
	parcels, more := s.exchange.Outbox()
	for _, each := range parcels {
		s.sent[each.To]++
		// take gets the error of a process that is gone.
		_ = s.mailbox.Send(each.To, s.key(s.mailbox.Name(), each.To, s.sent[each.To]), each.Frame)
	}
	return more
}

// take receives the frames of each process, in order.
func (s *streams) take(ctx context.Context, processes []string) {
	came := make(map[string]int)
	for processes = slices.Clone(processes); len(processes) > 0; {
		keys := make([]meeting.Key, len(processes))
		for i, from := range processes {
			keys[i] = meeting.Key{From: from, Name: s.key(from, s.mailbox.Name(), came[from]+1)}
		}
		key, raw, err := s.mailbox.AwaitWith(ctx, processes, keys...)
		from := key.From
		var frame guest.StreamFrame
		if err == nil {
			came[from]++
			if json.Unmarshal(raw, &frame) == nil {
				s.exchange.Take(from, frame)
				continue
			}
		} else if gone := (*meeting.GoneError)(nil); errors.As(err, &gone) {
			from = gone.Who
		} else {
			return
		}
		s.exchange.Lose(from) // it is gone, or sends what cannot be read
		processes = slices.DeleteFunc(processes, func(name string) bool { return name == from })
	}
}
