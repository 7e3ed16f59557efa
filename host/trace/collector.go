// Package trace shows the calls that programs make of libibverbs and librdmacm. A library that is preloaded into the
// program (rdmacore/trace) writes them into a ring in memory, one for each process. Collector takes the rings of all
// processes and reads them; Decoder makes calls of records, and writers show them.
package trace

import (
	"container/heap"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rdmarun/host/printable"
	"rdmarun/host/trace/calls"
	"rdmarun/host/unixsocket"
)

const (
	// Variable is what the library finds rdmarun by.
	Variable = "RDMARUN_EXEC_TRACE"
	// idlePause is the time between two looks at rings without records.
	idlePause = 2 * time.Millisecond
	// maxProcesses bounds the rings that are read at a time.
	maxProcesses = 1024
	// maxArriving bounds the connections of processes that have not sent a ring, and arrivalLimit the time of each.
	maxArriving  = 64
	arrivalLimit = 10 * time.Second
	// maxAtOnce bounds the records of a ring that are read before those of others.
	maxAtOnce = 1024
	// maxWaiting bounds the records of a ring that wait for those behind them.
	maxWaiting = 16 * maxAtOnce
)

// Collector reads the rings of a program and of the processes that it starts.
type Collector struct {
	table    *calls.Table
	listener *net.UnixListener
	token    string
	began    int64 // CLOCK_MONOTONIC
	take     func(*Call)
	warn     func(string)

	decoder *decoder
	heads   heads

	mutex    sync.Mutex // of the fields below, and of calls of warn
	arrived  []*traced
	count    int // processes that were traced
	live     int // those of them that run has not finished
	accepted sync.WaitGroup

	processes []*traced
	ending    chan struct{}
	done      chan struct{}
}

// traced is a process with a ring.
type traced struct {
	*process
	ring *ring
	fd   int // of the process (pidfd_open)
	over bool
	// pending are records that wait for those of other processes, in the order of their ends.
	pending []*raw
	// behind is set when the ring had more records than were read at once. They ended after this time, but for what
	// another thread did just before.
	behind int64
}

// add keeps a record. Records come nearly in the order of their ends, because a thread writes one when its call ends.
func (p *traced) add(record *raw) {
	at := len(p.pending)
	for at > 0 && p.pending[at-1].end > record.end {
		at--
	}
	p.pending = slices.Insert(p.pending, at, record)
}

// heads are processes with pending records, as a heap by the end of the first one.
type heads []*traced

func (h heads) Len() int           { return len(h) }
func (h heads) Less(i, j int) bool { return h[i].pending[0].end < h[j].pending[0].end }
func (h heads) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *heads) Push(each any)     { *h = append(*h, each.(*traced)) }

func (h *heads) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// Options say what a Collector does with calls.
type Options struct {
	// Take gets each call, in the order of their ends.
	Take func(*Call)
	// Warn gets sentences about what is missing, one at a time.
	Warn func(string)
	// Flush, unless it is nil, is called when no further calls have come for the moment.
	Flush func()
	// Brief leaves arguments out, for summaries.
	Brief bool
	// Numbers leaves Arguments and Results of posts and polls out, which have Call.Queue, Posted and Polled. Such a
	// call is valid until Take returns.
	Numbers bool
	// Nested includes calls that the libraries make within others.
	Nested bool
	// Complete has programs wait until their data calls are read, rather than lose some.
	Complete bool
	// Memory adds calls about the memory of requests and regions: memory that changes while it is sent, and memory that
	// is given back. It sets Call.InHandler, too.
	Memory bool
	// Contents adds calls named memory_sent and memory_read, with what messages contain: one for each segment. What is
	// sent comes before the post of the same thread. What a READ has brought comes before the poll of its completion.
	// Memory excludes it.
	Contents bool
	// Processes adds calls named fork, exec and exit for what processes do.
	Processes bool
}

// NewCollector listens for processes. The caller ends it by Close.
func NewCollector(options Options) (*Collector, error) {
	table, err := calls.Load()
	if err != nil {
		return nil, err
	}
	listener, err := unixsocket.Listen("unixpacket", "trace")
	if err != nil {
		return nil, fmt.Errorf("listen for processes: %w", err)
	}
	c := &Collector{
		table: table, listener: listener, token: rand.Text(), began: monotonic(), take: options.Take,
		warn: options.Warn, ending: make(chan struct{}), done: make(chan struct{}),
	}
	c.decoder = newDecoder(table, c.began, options)
	c.accepted.Go(c.accept)
	go c.run()
	return c, nil
}

// Setting is the value of Variable.
func (c *Collector) Setting() string {
	setting := c.listener.Addr().String()[1:] + " " + c.token
	if c.decoder.options.Complete {
		setting += " complete"
	}
	if c.decoder.options.Memory {
		setting += " memory"
	}
	if c.decoder.options.Contents {
		setting += " contents"
	}
	return setting
}

// Close reads what is left, and reports calls that have not returned. All processes have ended, or go on without.
func (c *Collector) Close() {
	// A process that died right after it had connected is in the queue of the listener.
	_ = c.listener.SetDeadline(time.Now().Add(10 * time.Millisecond))
	c.accepted.Wait()
	c.listener.Close()
	close(c.ending)
	<-c.done
	sentences := unseen(slices.Sorted(maps.Keys(c.decoder.files)))
	if c.count == 0 {
		sentences = append(
			sentences, "no call was seen: the program has made none, or has looked functions up by dlsym",
		)
	}
	for _, sentence := range sentences {
		now := time.Duration(monotonic() - c.began)
		c.take(&Call{Note: sentence, Start: now, End: now})
	}
}

func monotonic() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // it cannot fail
	return now.Nano()
}

// accept takes the rings that processes send. None waits for another that has connected and sends nothing.
func (c *Collector) accept() {
	ignored := func(error) {} // the process waits until there are descriptors
	room := make(chan struct{}, maxArriving)
	unixsocket.Accept(c.listener, ignored, func(connection *net.UnixConn, pid int) {
		room <- struct{}{}
		c.accepted.Go(func() {
			defer func() { <-room }()
			defer connection.Close()
			process, err := c.receive(connection, pid)
			c.mutex.Lock()
			defer c.mutex.Unlock()
			switch {
			case err != nil:
				c.warn(fmt.Sprintf("process %d is not traced: %v", pid, err))
			case process != nil:
				c.arrived = append(c.arrived, process)
				_, _ = connection.Write([]byte{1}) // the process may make calls; it may have died
			}
		})
	})
}

// receive reads the message of a process: the token with the file of its ring, or with the error for which it has none.
// nil without an error is for connections of others.
func (c *Collector) receive(connection *net.UnixConn, pid int) (*traced, error) {
	_ = connection.SetDeadline(time.Now().Add(arrivalLimit))
	text, control := make([]byte, 128), make([]byte, unix.CmsgSpace(8*4))
	n, controls, _, _, err := connection.ReadMsgUnix(text, control)
	files := descriptors(control[:controls])
	defer func() {
		for _, file := range files {
			_ = unix.Close(file)
		}
	}()
	token, cause, isError := strings.Cut(string(text[:n]), " ")
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("it has connected, but has sent no ring for %v", arrivalLimit)
	case err != nil, subtle.ConstantTimeCompare([]byte(token), []byte(c.token)) != 1:
		return nil, nil
	case isError:
		number, _ := strconv.ParseUint(cause, 10, 12)
		return nil, fmt.Errorf("it could not make a ring of %d MiB: %w", ringSize>>20, unix.Errno(number))
	case len(files) != 1:
		return nil, fmt.Errorf("its ring did not arrive (%d file descriptors)", len(files))
	}
	c.mutex.Lock()
	live := c.live
	c.mutex.Unlock()
	if live >= maxProcesses {
		return nil, fmt.Errorf("%d others are", live)
	}
	ring, err := openRing(files[0], c.table.Sum)
	if err != nil {
		return nil, err
	}
	c.mutex.Lock()
	c.count++
	c.live++
	c.mutex.Unlock()
	fd, err := unix.PidfdOpen(pid, 0)
	over := err != nil // it has ended already
	process := newProcess(pid, int(ring.parent))
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)) // it waits, unless it was killed
	process.program = printable.Brief(strings.TrimSpace(string(name)), 16)
	return &traced{process: process, ring: ring, fd: fd, over: over}, nil
}

// descriptors are those of a message.
func descriptors(control []byte) (files []int) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil
	}
	for i := range messages {
		if rights, err := unix.ParseUnixRights(&messages[i]); err == nil {
			files = append(files, rights...)
		}
	}
	return files
}

// run reads all rings until Close.
func (c *Collector) run() {
	defer close(c.done)
	for {
		ending := false
		select {
		case <-c.ending:
			ending = true
		default:
		}
		c.takeArrived()
		before := monotonic()
		busy := false
		for _, process := range c.processes {
			busy = c.read(process, ending) || busy
		}
		for _, process := range c.processes {
			if process.behind != 0 {
				before = min(before, process.behind)
			}
		}
		if ending {
			for c.readAll() {
			}
			before = math.MaxInt64
		}
		c.emit(before)
		c.removeFinished(ending)
		if ending {
			return
		}
		if !busy {
			if flush := c.decoder.options.Flush; flush != nil {
				flush()
			}
			select {
			case <-time.After(idlePause):
			case <-c.ending:
			}
		}
	}
}

func (c *Collector) takeArrived() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, process := range c.arrived {
		c.decoder.begin(process.process)
		c.processes = append(c.processes, process)
	}
	c.arrived = nil
}

// readAll reads once more from all rings, and reports whether something came.
func (c *Collector) readAll() (busy bool) {
	for _, process := range c.processes {
		busy = c.read(process, true) || busy
	}
	return busy
}

// read takes the records of a process that are there.
func (c *Collector) read(p *traced, ending bool) (busy bool) {
	if p.ring == nil {
		return false
	}
	ended := p.over || hasEnded(p.fd)
	p.over = ended
	now := monotonic()
	p.behind = 0
	for i := range maxAtOnce {
		record, err := p.ring.next(ended || ending)
		if err != nil {
			c.mutex.Lock()
			c.warn(fmt.Sprintf("process %d: %v; its further calls are not shown", p.pid, err))
			c.mutex.Unlock()
			p.ring.close()
			p.ring = nil
			return busy
		}
		if record == nil {
			break
		}
		busy = true
		if record.end > now {
			now = monotonic()
			record.end = min(record.end, now) // the process may write any time
		}
		// A record is reserved during its call, and those behind it later.
		if i == maxAtOnce-1 && len(p.pending) < maxWaiting {
			p.behind = max(record.start, 1)
		}
		if record.kind == kindClock {
			record.release()
			continue
		}
		p.add(record)
	}
	if lost := p.ring.newlyLost(); lost > 0 {
		p.add(&raw{kind: kindLost, folded: lost, end: monotonic()})
	}
	return busy
}

// kindLost marks where records are missing. The library writes none of that kind.
const kindLost kind = 255

// hasEnded reports whether a process has ended.
func hasEnded(fd int) bool {
	polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(polled, 0)
	return err == nil && n == 1
}

func (c *Collector) removeFinished(ending bool) {
	before := len(c.processes)
	c.processes = slices.DeleteFunc(c.processes, func(p *traced) bool { return c.finished(p, ending) })
	c.mutex.Lock()
	c.live -= before - len(c.processes)
	c.mutex.Unlock()
}

// finished closes a ring of a process that has ended, and from which nothing more comes.
func (c *Collector) finished(p *traced, ending bool) bool {
	if !ending && (!p.over || len(p.pending) > 0 || p.ring != nil && p.ring.isPending()) {
		return false
	}
	c.decoder.end(p.process, p.over && p.ring != nil && !p.ring.exits())
	if p.ring != nil {
		p.ring.close()
		p.ring = nil
	}
	if p.fd >= 0 {
		_ = unix.Close(p.fd)
	}
	return true
}

// emit passes on the calls that ended before a time, in the order of their ends.
func (c *Collector) emit(before int64) {
	c.heads = c.heads[:0]
	for _, process := range c.processes {
		if len(process.pending) > 0 {
			c.heads = append(c.heads, process)
		}
	}
	heap.Init(&c.heads)
	for len(c.heads) > 0 && c.heads[0].pending[0].end < before {
		process := c.heads[0]
		until := before
		for _, next := range c.heads[1:min(3, len(c.heads))] {
			until = min(until, next.pending[0].end)
		}
		count := 1
		for count < len(process.pending) && process.pending[count].end < until {
			count++
		}
		for _, record := range process.pending[:count] {
			if call := c.decoder.decode(process.process, record); call != nil {
				c.take(call)
			}
			record.release()
		}
		if process.pending = process.pending[count:]; len(process.pending) == 0 {
			heap.Remove(&c.heads, 0)
		} else {
			heap.Fix(&c.heads, 0)
		}
	}
}
