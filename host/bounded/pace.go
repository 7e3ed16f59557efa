package bounded

import (
	"sync"
	"time"
)

// Pace bounds how fast bytes are read from a source that may never end: a number at once, and then a number a second.
// A faster writer blocks on its pipe.
type Pace struct {
	// Burst are the bytes at once, PerSecond those after that.
	Burst, PerSecond int

	mu sync.Mutex
	// free is when all that was taken may have been taken.
	free time.Time
}

// Take waits until so many bytes may be taken, and takes them.
func (p *Pace) Take(bytes int) { time.Sleep(p.wait(bytes, time.Now())) }

// Write implements io.Writer: it takes the bytes, and writes nothing.
func (p *Pace) Write(data []byte) (int, error) {
	p.Take(len(data))
	return len(data), nil
}

// wait takes bytes, and returns how long to wait before the next ones.
func (p *Pace) wait(bytes int, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free.Before(now) {
		p.free = now
	}
	p.free = p.free.Add(p.lasts(bytes))
	return max(0, p.free.Sub(now)-p.lasts(p.Burst))
}

func (p *Pace) lasts(bytes int) time.Duration {
	return time.Duration(float64(bytes) / float64(p.PerSecond) * float64(time.Second))
}
