package testbed

import (
	"context"
	"errors"
	"fmt"
)

// Busy runs f between two roles without the baton: f works with objects of its own, and does not touch the
// lab.  The death of a role ends f's context and waits for f.
func (l *Lab) Busy(ctx context.Context, what string, f func(ctx context.Context) error, roles ...*Role) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	for _, role := range roles {
		if err := role.alive(); err != nil {
			return err
		}
		if role.guest != nil {
			return &Failure{What: fmt.Sprintf("role %s is a guest, which works for itself", role.Name)}
		}
		entry := role.later(what, func() error {
			cancel(&diedError{role.Name, what})
			l.Clock().Outside(func() { <-done })
			return nil
		})
		defer func() { entry.done = true }()
	}
	var err error
	l.Outside(func() {
		defer close(done)
		err = f(ctx)
	})
	var died *diedError
	if err != nil && errors.As(context.Cause(ctx), &died) {
		return &Failure{What: died.Error(), Hint: "a step beside this one killed it"}
	}
	return err
}

// diedError is the cause of a context that the death of a role has ended.
type diedError struct{ role, what string }

func (e *diedError) Error() string { return fmt.Sprintf("role %s died during %s", e.role, e.what) }
