package capture

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"rdmarun/host/lab"
	"rdmarun/host/pcapng"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/rdmacore"
)

// FailureSender is the agent's end of captures of failures. It keeps the last packets of each case, and sends those of
// the failed cases that the controller selects.
type FailureSender struct {
	wanted      lab.Capture
	application string
	ask         func(what string, data []byte) error
}

// SendFailures has what providers send around failures sent to the controller; ask asks it.
func SendFailures(wanted lab.Capture, application string, ask func(what string, data []byte) error) *FailureSender {
	return &FailureSender{wanted: wanted, application: application, ask: ask}
}

// Begin implements scenario.FailureCapture.
func (s *FailureSender) Begin(string, int, []string) (scenario.Recording, error) {
	r := &sentRecording{sender: s}
	return r, r.begin(s.application, s.wanted)
}

// sentRecording is sent to the controller, and names no file.
type sentRecording struct {
	sender *FailureSender
	kept
}

// End implements scenario.Recording.
func (r *sentRecording) End(failed bool) (path string, err error) {
	totals, wrong := r.tap.close()
	if !failed {
		return "", nil
	}
	if r.any() {
		out := bufio.NewWriterSize(&parts{r.sender.ask}, partBytes)
		err = errors.Join(r.blocks(out), out.Flush())
	}
	if err != nil {
		return "", errors.Join(wrong, err) // the controller is gone
	}
	end := lab.Captured{Missing: totals.Missing, Earlier: uint64(r.earlier), Later: uint64(r.later)}
	if wrong != nil {
		end.Error = wrong.Error()
	}
	raw, err := json.Marshal(end)
	if err == nil {
		err = r.sender.ask(lab.SubjectCaptured, raw)
	}
	return "", err
}

// parts are messages to the controller.
type parts struct {
	ask func(what string, data []byte) error
}

func (p *parts) Write(data []byte) (written int, err error) {
	for part := range slices.Chunk(data, partBytes) {
		if err := p.ask(lab.SubjectPackets, part); err != nil {
			return written, err
		}
		written += len(part)
	}
	return written, nil
}

const (
	// failureTime bounds how long the hosts of a case may take for its packets, failureSilence how long all of them
	// may be silent.
	failureTime, failureSilence = 30 * time.Second, 10 * time.Second
)

// LabFailures makes a file of the packets of all hosts around each failure, in a folder, on the controller's clock.
type LabFailures struct {
	*Failures
	wanted lab.Capture
	clocks map[string]record.Clock
	gone   func(host string) bool

	lock    sync.Mutex
	current *gathering // of the case that runs; nil between two
	// late are hosts that did not send their packets in time: what they send later cannot be assigned to a case.
	late map[string]bool
}

// OnFailureOf makes the agents of hosts send what they have around failures; gone reports whether the agent of a host
// has gone.
func OnFailureOf(
	failures *Failures, hosts []string, clocks map[string]record.Clock, gone func(host string) bool,
) *LabFailures {
	return &LabFailures{
		Failures: failures, clocks: clocks, gone: gone, late: make(map[string]bool),
		wanted: lab.Capture{SnapLength: failures.snapLength, Most: min(maxAround, quotaOf(hosts))},
	}
}

// Wanted is what each host is to send of a case that failed.
func (f *LabFailures) Wanted() lab.Capture { return f.wanted }

// Begin implements scenario.FailureCapture.
func (f *LabFailures) Begin(id string, number int, hosts []string) (scenario.Recording, error) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.current = gatheringOf(
		f.wanted, slices.DeleteFunc(slices.Clone(hosts), func(host string) bool { return f.late[host] }),
	)
	f.current.silenceTimeout = failureSilence
	return &labRecording{f, f.path(id, number), f.current}, nil
}

// Take keeps a message of a host about the case that runs.
func (f *LabFailures) Take(host, what string, data []byte) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.current != nil {
		f.current.Take(host, what, data)
	}
}

// labRecording is that of the hosts of a run of a case.
type labRecording struct {
	failures *LabFailures
	path     string
	*gathering
}

// Capture implements scenario.Recording: no role is here.
func (*labRecording) Capture() *rdmacore.Capture { return nil }

// Failed implements scenario.Recording: each host notes its own time.
func (*labRecording) Failed(uint64) {}

// End implements scenario.Recording.
func (r *labRecording) End(failed bool) (path string, err error) {
	if failed {
		waiting, cancel := context.WithTimeout(context.Background(), failureTime)
		defer cancel()
		r.Await(waiting, r.failures.gone)
	}
	r.failures.end()
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.discard()
	if !failed {
		return "", remove(r.path)
	}
	size, earlier, later, missing := int64(0), uint64(0), uint64(0), uint64(0)
	for host, source := range r.sources {
		size += source.size
		if end := source.end; end != nil {
			earlier, later, missing = earlier+end.Earlier, later+end.Later, missing+end.Missing
		} else if source.wrong == "" {
			r.failures.isLate(host)
		}
	}
	if size == 0 || !r.failures.reserve(size) {
		return "", errors.Join(r.lacking(), remove(r.path))
	}
	comment := aroundFailure + leftOut(earlier, later, missing)
	if err := writeFile(r.path, func(w *pcapng.Writer) error {
		return r.merge(w, r.failures.application, comment, r.failures.clocks)
	}); err != nil {
		return "", err
	}
	return r.path, r.lacking()
}

// lacking is what is missing, as an error.  mu is held.
func (r *labRecording) lacking() error {
	if lacks := r.lacks(); len(lacks) > 0 {
		return errors.New(strings.Join(lacks, "; "))
	}
	return nil
}

// end has nothing more taken.
func (f *LabFailures) end() {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.current = nil
}

// isLate has nothing taken of a host any more.
func (f *LabFailures) isLate(host string) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.late[host] = true
}
