package record

import "sync"

const (
	// maxQueued is how many bytes of records may wait for the consumers of a queued stream, as far as weight knows
	// them.
	maxQueued = 64 << 20
	// recordBytes is about what a record takes beside its texts.
	recordBytes = 1 << 10
)

// queue has a goroutine deliver records.  Who puts one in waits only where those that wait have maxQueued bytes.
type queue struct {
	deliver func(item)
	ended   chan struct{} // closed once all is delivered and no more comes

	mu      sync.Mutex
	changed *sync.Cond
	waiting []item
	bytes   int // of those that wait
	over    bool
}

func newQueue(deliver func(item)) *queue {
	q := &queue{deliver: deliver, ended: make(chan struct{})}
	q.changed = sync.NewCond(&q.mu)
	go q.run()
	return q
}

// put queues a record.  What a step has is copied: the next step of the case writes over it.
func (q *queue) put(each item) {
	kept := *each.record
	if kept.Step != nil {
		step := *kept.Step
		kept.Step = &step
	}
	each.record = &kept
	size := weight(&kept)
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.bytes > 0 && q.bytes+size > maxQueued {
		q.changed.Wait()
	}
	q.waiting, q.bytes = append(q.waiting, each), q.bytes+size
	q.changed.Broadcast()
}

func (q *queue) run() {
	defer close(q.ended)
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		for len(q.waiting) == 0 {
			if q.over {
				return
			}
			q.changed.Wait()
		}
		first := q.waiting[0]
		q.waiting[0] = item{}
		q.waiting = q.waiting[1:]
		q.mu.Unlock()
		q.deliver(first)
		q.mu.Lock()
		q.bytes -= weight(first.record)
		q.changed.Broadcast()
	}
}

func (q *queue) close() {
	q.mu.Lock()
	q.over = true
	q.changed.Broadcast()
	q.mu.Unlock()
	<-q.ended
}

// weight is about how many bytes a record takes.
func weight(r *Record) int {
	bytes := recordBytes
	if r.Line != nil {
		bytes += len(r.Line.Text)
	}
	if r.Step != nil {
		bytes += len(r.Step.Text)
		for _, field := range r.Step.Fields {
			bytes += len(field.Value)
		}
	}
	if r.Measure != nil {
		for _, each := range r.Measure.Latency {
			bytes += len(each.HDR)
		}
	}
	return bytes
}
