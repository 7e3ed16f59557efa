package meeting

import (
	"sync"

	"rdmarun/host/bus"
)

// reports are what others have reported to the host, which takes them on a goroutine of its own: a record may have to
// wait for an output, and no message does that comes after it.
type reports struct {
	take func(from string, data []byte)

	mu      sync.Mutex
	changed *sync.Cond
	waiting []report
	bytes   map[string]int // that wait, by who has reported them
	come    int            // how many have come, and taken how many of these the host has taken
	taken   int
	over    bool
	ended   chan struct{}
}

type report struct {
	from string
	said *bus.Message
}

func newReports(take func(from string, data []byte)) *reports {
	r := &reports{take: take, bytes: make(map[string]int), ended: make(chan struct{})}
	r.changed = sync.NewCond(&r.mu)
	go r.run()
	return r
}

// put queues a report.  It is false when its process has too many bytes waiting: it does not wait for answers.
func (r *reports) put(from string, said *bus.Message) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || r.bytes[from]+len(said.Data) > mostReported {
		return r.over
	}
	r.bytes[from] += len(said.Data)
	r.waiting = append(r.waiting, report{from, said})
	r.come++
	r.changed.Broadcast()
	return true
}

func (r *reports) run() {
	defer close(r.ended)
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		for len(r.waiting) == 0 {
			if r.over {
				return
			}
			r.changed.Wait()
		}
		first := r.waiting[0]
		r.waiting[0] = report{}
		r.waiting = r.waiting[1:]
		r.mu.Unlock()
		r.take(first.from, first.said.Data)
		_ = first.said.Respond(nil) // it may have asked
		r.mu.Lock()
		r.bytes[first.from] -= len(first.said.Data)
		r.taken++
		r.changed.Broadcast()
	}
}

// drain waits until all that has come before is taken.
func (r *reports) drain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for come := r.come; r.taken < come; {
		r.changed.Wait()
	}
}

// close waits until all is taken, and ends the goroutine.
func (r *reports) close() {
	r.mu.Lock()
	r.over = true
	r.changed.Broadcast()
	r.mu.Unlock()
	<-r.ended
}
