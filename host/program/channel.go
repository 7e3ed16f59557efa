package program

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"rdmarun/host/printable"
	"rdmarun/host/unixsocket"
	"rdmarun/rdmacore"
)

const (
	// controlTime bounds how long the processes of a program may take for their answers.
	controlTime = 2 * time.Second
	// changeTime bounds how long an operation waits for others, and for new processes to take the faults in force.
	changeTime = 3 * controlTime
	// maxConnected bounds the processes of a program that have their device open, each a descriptor here.
	maxConnected = 1024
)

// process is one process with a device.
type process struct {
	pid  int
	conn *net.UnixConn
	gone chan struct{} // closed when nothing more comes
	past bool          // Device.past has its counters; under Device.mutex

	counters []rdmacore.ControlCounter
	tally    *tally

	writing sync.Mutex // held while a message with its deadline is sent

	mutex   sync.Mutex // taken after Device.mutex
	number  uint32
	answers map[uint32]chan rdmacore.ControlAnswer
	late    map[uint32]bool // requests for a fault that nothing waits for any more
}

// NewDevice is a device for the programs of a role, one after the other.  The caller closes it after their end.
func NewDevice(role string) (*Device, error) {
	listener, err := unixsocket.Listen("unixpacket", "control")
	if err != nil {
		return nil, fmt.Errorf("listen for its processes: %w", err)
	}
	d := &Device{
		name: role, listener: listener, changing: make(chan struct{}, 1), connected: map[*net.UnixConn]bool{},
		past: map[string]uint64{},
	}
	d.quiet.L = &d.mutex
	d.serving.Go(func() { d.accept(listener, d.serve) })
	return d, nil
}

// Close ends the channels to processes.  What they have reported stays known.  The error says why packets of them are
// missing (Capture).
func (d *Device) Close() error {
	d.listener.Close()
	if d.capturing != nil {
		d.capturing.Close()
	}
	d.end()
	d.serving.Wait()
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.uncaptured
}

// addresses are the names of the sockets as the library takes them; capture is "" without Capture.
func (d *Device) addresses() (control, capture string) {
	if d.capturing != nil {
		capture = d.capturing.Addr().String()
	}
	return strings.TrimPrefix(d.listener.Addr().String(), "@"), capture
}

// begin lets processes that descend from top connect.
func (d *Device) begin(top int) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.top != 0 {
		return fmt.Errorf("the device of %s belongs to a program that runs", d.name)
	}
	d.top, d.ending = top, false
	return nil
}

// end ends the channels of a program, once its processes have ended.
func (d *Device) end() {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.ending = true
	for conn := range d.connected {
		_ = conn.SetReadDeadline(time.Now().Add(controlTime)) // what they said last is still read
	}
	for len(d.connected) > 0 {
		d.quiet.Wait()
	}
	d.top = 0
}

// accept has serve called for each process of the program that connects.  Any process of the host may connect, so
// others are neither counted nor reported.
func (d *Device) accept(listener *net.UnixListener, serve func(conn *net.UnixConn, pid int)) {
	failed := func(err error) { d.refuse(fmt.Errorf("accept a process: %w", err)) }
	unixsocket.Accept(listener, failed, func(conn *net.UnixConn, pid int) {
		if !d.admit(conn, pid) {
			conn.Close()
			return
		}
		d.serving.Go(func() {
			serve(conn, pid)
			d.mutex.Lock()
			defer d.mutex.Unlock()
			delete(d.connected, conn)
			d.quiet.Broadcast()
		})
	})
}

// admit reports whether a process is of the program, and notes its connection.
func (d *Device) admit(conn *net.UnixConn, pid int) bool {
	d.mutex.Lock()
	top := d.top
	d.mutex.Unlock()
	if top == 0 || !descends(pid, top, statusOf) {
		return false
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.top != top || d.ending {
		return false
	}
	if len(d.connected) >= maxConnected {
		d.refused = fmt.Errorf("process %d cannot be controlled: more than %d processes have opened the device: "+
			"start fewer at a time", pid, maxConnected)
		return false
	}
	d.connected[conn] = true
	return true
}

// refuse has the operations from now on fail, since not every process is controlled.
func (d *Device) refuse(err error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.refused = err
}

// serve talks to one process until its end.
func (d *Device) serve(conn *net.UnixConn, pid int) {
	defer conn.Close()
	message := make([]byte, rdmacore.ControlMessageMax)
	d.limit(conn)
	tally, err := sendTally(conn)
	if err != nil {
		d.refuse(fmt.Errorf("process %d cannot be controlled: %w", pid, err))
		return
	}
	n, err := conn.Read(message)
	var counters []rdmacore.ControlCounter
	if err == nil {
		counters, err = rdmacore.DecodeControlHello(message[:n])
	}
	if err != nil {
		tally.close()
		d.refuse(fmt.Errorf("process %d cannot be controlled: %w", pid, err))
		return
	}
	d.unlimit(conn)
	printable.Each(&counters, func(name string) string { return printable.Brief(name, maxText) })
	p := &process{
		pid: pid, conn: conn, gone: make(chan struct{}), answers: map[uint32]chan rdmacore.ControlAnswer{},
		late: map[uint32]bool{}, counters: counters, tally: tally,
	}
	var welcoming sync.WaitGroup
	defer welcoming.Wait()
	welcoming.Go(func() { d.welcome(p) })
	defer d.leave(p)
	for {
		n, err := conn.Read(message)
		if err != nil || n == 0 {
			return
		}
		answer, err := rdmacore.DecodeControl(message[:n])
		if err != nil {
			return
		}
		d.take(p, answer)
	}
}

// limit bounds the time of the next messages from a process.
func (d *Device) limit(conn *net.UnixConn) { _ = conn.SetReadDeadline(time.Now().Add(controlTime)) }

// unlimit lets a process be silent while the program runs.
func (d *Device) unlimit(conn *net.UnixConn) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if !d.ending {
		_ = conn.SetReadDeadline(time.Time{})
	}
}

// welcome sends the faults that are in force to a new process, which waits for that.
func (d *Device) welcome(p *process) {
	d.changing <- struct{}{}
	defer func() { <-d.changing }()
	d.mutex.Lock()
	faults := slices.Clone(d.faults)
	d.opened++
	if !p.past {
		d.processes = append(d.processes, p)
	}
	d.mutex.Unlock()
	end := time.Now().Add(controlTime)
	for _, each := range faults {
		_ = d.addTo(p, each, end) // its device may be unable to, as other processes' are
	}
	if d.holding {
		_, _ = p.ask(rdmacore.ControlRequest{Kind: rdmacore.ControlHoldEvents, Hold: true}, end)
	}
	_ = p.send(rdmacore.ControlRequest{Kind: rdmacore.ControlReady}, end)
}

// leave keeps what a process that has ended counted, and nothing else of it: a program may start any number of them.
func (d *Device) leave(p *process) {
	p.tally.close()
	d.mutex.Lock()
	defer d.mutex.Unlock()
	p.past = true
	d.processes = slices.DeleteFunc(d.processes, func(other *process) bool { return other == p })
	for _, each := range d.faults {
		if rule, has := each.rules[p]; has {
			each.count += p.tally.applied(rule)
		}
		delete(each.rules, p)
	}
	p.tally.addTo(d.past, p.counters)
	close(p.gone)
}

// take takes an answer.
func (d *Device) take(p *process, answer rdmacore.ControlAnswer) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	waiting := p.answers[answer.Number]
	delete(p.answers, answer.Number)
	isLate := p.late[answer.Number]
	delete(p.late, answer.Number)
	switch {
	case waiting != nil:
		waiting <- answer
	case isLate && answer.Kind == rdmacore.ControlFaultAdd && answer.Err == nil:
		d.serving.Go(func() {
			remove := rdmacore.ControlRequest{Kind: rdmacore.ControlFaultRemove, Rule: answer.Rule}
			_ = p.send(remove, time.Now().Add(controlTime))
		})
	}
}

// send sends a message, at most until end.
func (p *process) send(request rdmacore.ControlRequest, end time.Time) error {
	message, err := rdmacore.EncodeControl(request)
	if err != nil {
		return err
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	_ = p.conn.SetWriteDeadline(end)
	_, err = p.conn.Write(message)
	return err
}

// errGone is the answer of a process that has ended.
var errGone = errors.New("the process has ended")

// ask sends a request and waits for its answer until then.
func (p *process) ask(request rdmacore.ControlRequest, end time.Time) (rdmacore.ControlAnswer, error) {
	answer := make(chan rdmacore.ControlAnswer, 1)
	p.mutex.Lock()
	p.number++
	request.Number = p.number
	p.answers[request.Number] = answer
	p.mutex.Unlock()
	forget := func(isLate bool) {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		_, waits := p.answers[request.Number]
		delete(p.answers, request.Number)
		if waits && isLate && request.Kind == rdmacore.ControlFaultAdd {
			p.late[request.Number] = true
		}
	}
	if err := p.send(request, end); err != nil {
		forget(false)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = fmt.Errorf("process %d does not read requests within %v", p.pid, controlTime)
		} else if failure := (*net.OpError)(nil); errors.As(err, &failure) {
			err = errGone
		}
		return rdmacore.ControlAnswer{}, err
	}
	late := time.NewTimer(time.Until(end))
	defer late.Stop()
	err := errGone
	select {
	case got := <-answer:
		return got, got.Err
	case <-p.gone:
	case <-late.C:
		err = fmt.Errorf("process %d does not answer within %v", p.pid, controlTime)
	}
	forget(err != errGone)
	select {
	case got := <-answer: // at the same time
		return got, got.Err
	default:
		return rdmacore.ControlAnswer{}, err
	}
}

// awaitEnd waits until then for the end of a process.  A process may shut its channel down and go on.
func (p *process) awaitEnd(end time.Time) error {
	late := time.NewTimer(time.Until(end))
	defer late.Stop()
	select {
	case <-p.gone:
		return nil
	case <-late.C:
	}
	select {
	case <-p.gone:
		return nil
	default:
		return fmt.Errorf("process %d has shut its control channel down, and runs on", p.pid)
	}
}
