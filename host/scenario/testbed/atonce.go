package testbed

import (
	"context"
	"errors"
)

// ErrSibling is the cause of a branch's end when another has failed.
var ErrSibling = errors.New("another branch failed")

// AtOnce runs f so often at the same time. Each runs in a goroutine of its own that works only while it has the lock
// of the testbed. It ends when all have ended; the first error cancels the others, and is what it returns.
func (t *Testbed) AtOnce(ctx context.Context, count int, f func(ctx context.Context, i int) error) error {
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	clock := t.Clock()
	var (
		first    error // of those that have ended; written with the lock of the testbed
		panicked any   // likewise
		ended    []<-chan struct{}
	)
	for i := range count {
		run := func() {
			t.Lock()
			defer t.Unlock()
			defer func() {
				if value := recover(); value != nil {
					panicked = value
					cancel(ErrSibling)
				}
			}()
			if err := f(running, i); err != nil {
				if first == nil || errors.Is(first, ErrSibling) {
					first = err
				}
				cancel(ErrSibling)
			}
		}
		t.Unlocked(func() { ended = append(ended, clock.Launch(run)) })
	}
	t.Outside(func() {
		for _, end := range ended {
			<-end
		}
	})
	if panicked != nil {
		panic(panicked) // the case recovers it
	}
	return first
}
