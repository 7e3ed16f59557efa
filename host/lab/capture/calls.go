package capture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"rdmarun/host/lab"
	"rdmarun/host/printable"
)

// CallSender is the agent's end of what its guests call: a tracer writes to it.
type CallSender struct {
	ask    func(what string, data []byte) error
	left   int64
	beyond atomic.Uint64
	gone   bool // the controller is, and nothing is sent any more
}

// SendCalls has the calls of guests sent to the controller; ask asks it.
func SendCalls(wanted lab.Trace, ask func(what string, data []byte) error) *CallSender {
	return &CallSender{ask: ask, left: wanted.Most}
}

// Write sends whole lines, up to the controller's limit.
func (s *CallSender) Write(lines []byte) (int, error) {
	if s.left -= int64(len(lines)); s.left < 0 {
		s.left = -1 // and nothing shorter after it
		s.beyond.Add(uint64(bytes.Count(lines, []byte("\n"))))
		return len(lines), nil
	}
	if !s.gone {
		s.gone = s.ask(lab.SubjectCalls, lines) != nil
	}
	return len(lines), nil
}

// Close sends the end, and what the tracer has lost.
func (s *CallSender) Close(lack error) {
	end := lab.Traced{Beyond: s.beyond.Load()}
	if lack != nil {
		end.Error = lack.Error()
	}
	if raw, err := json.Marshal(end); err == nil {
		_ = s.ask(lab.SubjectTraced, raw) // the controller may end at once
	}
}

// Calls takes what the guests of hosts call, and shows it as it comes.
type Calls struct {
	wanted lab.Trace
	show   func(host, line string)
	mu     sync.Mutex
	hosts  map[string]*traced
	*ends
}

// traced is what one host sends.
type traced struct {
	size  int64
	end   *lab.Traced
	wrong string // why nothing more is taken
}

// CollectCalls shows the calls of those functions, without any of all, that the guests of hosts make.
func CollectCalls(show func(host, line string), functions, hosts []string) *Calls {
	c := &Calls{
		wanted: lab.Trace{Functions: functions, Most: quotaOf(hosts)}, show: show, hosts: make(map[string]*traced),
		ends: endsOf(hosts),
	}
	for _, host := range hosts {
		c.hosts[host] = &traced{}
	}
	return c
}

// Wanted is what each host is to send.
func (c *Calls) Wanted() lab.Trace { return c.wanted }

// Take shows a message of a host.
func (c *Calls) Take(host, what string, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hosts[host]
	if h == nil || h.end != nil || h.wrong != "" {
		return
	}
	switch what {
	case lab.SubjectCalls:
		if h.size += int64(len(data)); h.size > c.wanted.Most {
			h.wrong = "it sends more than it may"
			break
		}
		for line := range strings.Lines(string(data)) {
			if line = strings.TrimSuffix(line, "\n"); line != "" {
				c.show(host, line)
			}
		}
	case lab.SubjectTraced:
		h.end = &lab.Traced{}
		if err := json.Unmarshal(data, h.end); err != nil {
			h.end, h.wrong = nil, "their end is invalid"
		} else {
			printable.Each(h.end, lab.Text)
		}
	}
	c.came(host, h.end != nil || h.wrong != "")
}

// Lacks are what is not shown, a sentence for each host.
func (c *Calls) Lacks() (lacks []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for host, h := range c.hosts {
		switch {
		case h.wrong != "":
			lacks = append(lacks, fmt.Sprintf("host %s: calls are missing: %s", host, h.wrong))
		case h.end == nil:
			lacks = append(lacks, fmt.Sprintf("host %s: its calls end early: it was lost", host))
		case h.end.Error != "":
			lacks = append(lacks, fmt.Sprintf("host %s: calls are missing: %s", host, h.end.Error))
		case h.end.Beyond > 0:
			lacks = append(
				lacks,
				fmt.Sprintf(
					"host %s: its last %d lines are cut, since a host may send %dMiB", host, h.end.Beyond,
					c.wanted.Most>>20,
				),
			)
		}
	}
	slices.Sort(lacks)
	return lacks
}
