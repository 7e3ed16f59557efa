package cases

// Tail keeps the first and the last of many: what a case begins with and how it ends.
type Tail[T any] struct {
	limit   int
	head    []T
	tail    []T // a ring once it is full
	next    int
	dropped int
}

func newTail[T any](limit int) Tail[T] { return Tail[T]{limit: limit} }

func (t *Tail[T]) add(value T) {
	half := t.limit / 2
	switch {
	case t.limit == 0:
		t.dropped++
	case len(t.head) < t.limit-half:
		t.head = append(t.head, value)
	case len(t.tail) < half:
		t.tail = append(t.tail, value)
	default:
		t.dropped++
		t.tail[t.next] = value
		t.next = (t.next + 1) % half
	}
}

// Head are the first ones.
func (t *Tail[T]) Head() []T { return t.head }

// Dropped is how many are missing between Head and Last.
func (t *Tail[T]) Dropped() int { return t.dropped }

// Last are the last ones, less those in Head.
func (t *Tail[T]) Last() []T {
	return append(append([]T(nil), t.tail[t.next:]...), t.tail[:t.next]...)
}

// All is Head and Last.
func (t *Tail[T]) All() []T { return append(append([]T(nil), t.head...), t.Last()...) }
