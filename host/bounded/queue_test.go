package bounded

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
)

// parcel is an item of a sender.
type parcel struct {
	from, text string
}

// TestOffer: items of each sender are accepted in order, up to a limit of its own.  Drain waits for those that are
// queued, and Close for all.
func TestOffer(t *testing.T) {
	const most = 1000
	goOn := make(chan bool)
	taken := make(map[string][]string)
	q := NewQueue(most, func(p parcel) {
		<-goOn
		taken[p.from] = append(taken[p.from], p.text)
	})
	offer := func(from, text string, size int) bool { return q.Offer(from, size, parcel{from, text}) }
	if !offer("a", "1", most/2) || !offer("a", "2", most/2) {
		t.Fatal("an item within the limit is refused")
	}
	if offer("a", "3", 1) {
		t.Error("an item beyond the limit is taken")
	}
	if !offer("b", "1", 1) {
		t.Error("a sender has no room, because another has none")
	}
	drained := make(chan bool)
	go func() {
		q.Drain()
		close(drained)
	}()
	goOn <- true
	q.mu.Lock()
	for q.delivered == 0 {
		q.changed.Wait()
	}
	q.mu.Unlock()
	if !offer("a", "4", most/2) {
		t.Error("a delivered item still takes room")
	}
	select {
	case <-drained:
		t.Error("Drain does not wait")
	default:
	}
	close(goOn)
	<-drained
	q.Close()
	if got := fmt.Sprint(taken["a"], taken["b"]); got != "[1 2 4] [1]" {
		t.Error(got)
	}
	if !offer("a", "5", most+1) || len(taken["a"]) != 3 {
		t.Error("an item after the end is refused, or delivered")
	}
}

// TestPut: a sender waits while it would exceed its limit, other senders do not, and an item beyond the limit passes
// alone.
func TestPut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn, sent := make(chan bool), 0
		var taken []string
		q := NewQueue(10, func(p parcel) {
			<-goOn
			taken = append(taken, p.text)
		})
		go func() {
			for i, size := range []int{5, 5, 1, 20, 1} {
				q.Put("a", size, parcel{"a", fmt.Sprint(i)})
				sent++
			}
		}()
		for delivered, want := range []int{2, 3, 3, 3, 4, 5} {
			synctest.Wait()
			if sent != want {
				t.Errorf("after %d items %d are queued, want %d", delivered, sent, want)
			}
			if delivered == 0 {
				q.Put("b", 10, parcel{"b", "other"})
			}
			goOn <- true
		}
		close(goOn)
		q.Close()
		if want := []string{"0", "1", "other", "2", "3", "4"}; !slices.Equal(taken, want) {
			t.Errorf("%q, want %q", taken, want)
		}
	})
}
