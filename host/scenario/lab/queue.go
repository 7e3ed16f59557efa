package lab

import (
	"fmt"
	"syscall"

	"rdmarun/rdmacore"
)

// Queue is a completion queue that a step made, beside those made with queue pairs.
type Queue struct {
	role    *Role
	cq      *rdmacore.CQ
	release *free
}

// NewQueue makes a completion queue of the role's device.
func (r *Role) NewQueue(entries int) (*Queue, error) {
	cq, err := r.device.CreateCQ(entries)
	if err != nil {
		return nil, err
	}
	q := &Queue{role: r, cq: cq}
	q.release = r.later("CQ", cq.Destroy)
	return q, nil
}

// Bind gives the queue its name.
func (q *Queue) Bind(name string) { q.role.queues[name] = q }

// CQ is the queue itself.
func (q *Queue) CQ() *rdmacore.CQ { return q.cq }

// Destroy frees the queue, unless a queue pair still uses it.
func (q *Queue) Destroy() error {
	err := q.cq.Destroy()
	q.release.done = q.release.done || err == nil
	return err
}

// Queue finds a completion queue by the name that a step's `as` gave it.
func (r *Role) Queue(name string) (*Queue, error) {
	if err := r.alive(); err != nil {
		return nil, err
	}
	if q := r.queues[name]; q != nil {
		return q, nil
	}
	return nil, &Failure{What: fmt.Sprintf("role %s has no completion queue %q", r.Name, name), Hint: "the step create_cq did not run", Errno: syscall.EBADF}
}
