package bounded

import "sync"

// Queue delivers items on a goroutine of its own, in their order, so that a slow consumer does not block a sender.  The
// bytes that wait are bounded for each sender.  Any goroutine may call its methods.
type Queue[Item any] struct {
	most    int
	deliver func(Item)
	ended   chan struct{} // closed when all items are delivered and no more can come

	mu        sync.Mutex
	changed   *sync.Cond
	waiting   []queued[Item]
	bytes     map[string]int // the bytes that wait, by sender
	queued    int            // the number of items that were queued, delivered of those that were delivered
	delivered int
	closed    bool
}

type queued[Item any] struct {
	sender string
	bytes  int
	item   Item
}

// NewQueue returns a queue of at most that many bytes for each sender, until Close.
func NewQueue[Item any](most int, deliver func(Item)) *Queue[Item] {
	q := &Queue[Item]{most: most, deliver: deliver, ended: make(chan struct{}), bytes: make(map[string]int)}
	q.changed = sync.NewCond(&q.mu)
	go q.run()
	return q
}

// Put queues an item.  It waits while items of the sender wait, and this one would exceed the limit.
func (q *Queue[Item]) Put(sender string, bytes int, item Item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.bytes[sender] > 0 && q.bytes[sender]+bytes > q.most {
		q.changed.Wait()
	}
	q.add(sender, bytes, item)
}

// Offer queues an item, or returns false if it would exceed the limit of the sender.  After Close it drops the item.
func (q *Queue[Item]) Offer(sender string, bytes int, item Item) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.bytes[sender]+bytes > q.most {
		return q.closed
	}
	q.add(sender, bytes, item)
	return true
}

// add appends an item.  The caller holds q.mu.
func (q *Queue[Item]) add(sender string, bytes int, item Item) {
	q.waiting = append(q.waiting, queued[Item]{sender, bytes, item})
	q.bytes[sender] += bytes
	q.queued++
	q.changed.Broadcast()
}

func (q *Queue[Item]) run() {
	defer close(q.ended)
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		for len(q.waiting) == 0 {
			if q.closed {
				return
			}
			q.changed.Wait()
		}
		first := q.waiting[0]
		q.waiting[0] = queued[Item]{}
		q.waiting = q.waiting[1:]
		q.mu.Unlock()
		q.deliver(first.item)
		q.mu.Lock()
		q.bytes[first.sender] -= first.bytes
		q.delivered++
		q.changed.Broadcast()
	}
}

// Drain waits until all items that are queued now are delivered.
func (q *Queue[Item]) Drain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for queued := q.queued; q.delivered < queued; {
		q.changed.Wait()
	}
}

// Close waits until all items are delivered, and ends the goroutine.
func (q *Queue[Item]) Close() {
	q.mu.Lock()
	q.closed = true
	q.changed.Broadcast()
	q.mu.Unlock()
	<-q.ended
}
