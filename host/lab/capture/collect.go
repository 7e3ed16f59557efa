package capture

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"rdmarun/host/lab"
	"rdmarun/host/ownfile"
	"rdmarun/host/pcapng"
	"rdmarun/host/printable"
	"rdmarun/host/record"
)

// openTime is how long the reader of a pipe may take to open it, writeTime to take what is written.
const openTime, writeTime = 10 * time.Second, 10 * time.Second

// Collector keeps what hosts send until the run's end.
type Collector struct {
	path string
	file *os.File
	*gathering
}

// gathering keeps what hosts send in files that have no names, one of each host that sends anything.
type gathering struct {
	wanted  lab.Capture
	mu      sync.Mutex
	sources map[string]*source
	*ends
}

func gatheringOf(wanted lab.Capture, hosts []string) *gathering {
	g := &gathering{wanted: wanted, sources: make(map[string]*source), ends: endsOf(hosts)}
	for _, host := range hosts {
		g.sources[host] = &source{}
	}
	return g
}

// source is what one host sends.
type source struct {
	spool spool // nil until it has sent something
	size  int64
	end   *lab.Captured
	wrong string // why nothing more is taken
}

// spool is where it is kept.
type spool interface {
	io.Writer
	io.ReaderAt
	io.Closer
}

// Collect opens the file, which is written by Finish, for so many hosts.
func Collect(path string, snapLength uint32, hosts []string) (*Collector, error) {
	to := lab.Capture{SnapLength: snapLength, Most: quotaOf(hosts)}
	c := &Collector{path: path, gathering: gatheringOf(to, hosts)}
	var err error
	for end := time.Now().Add(openTime); ; time.Sleep(10 * time.Millisecond) {
		c.file, err = ownfile.Open(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NONBLOCK, ownfile.Private)
		if !errors.Is(err, syscall.ENXIO) {
			break
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("the pipe %s has no reader; start its reader first", path)
		}
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Wanted is what each host is to send.
func (c *Collector) Wanted() lab.Capture { return c.wanted }

// discard closes what is open.
func (c *gathering) discard() {
	for _, each := range c.sources {
		if each.spool != nil {
			_ = each.spool.Close()
		}
	}
}

// Take keeps a message of a host.
func (c *gathering) Take(host, what string, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sources[host]
	if s == nil || s.end != nil || s.wrong != "" {
		return
	}
	switch what {
	case lab.SubjectPackets:
		if s.size+int64(len(data)) > c.wanted.Most {
			s.wrong = "it sends more than it may"
			break
		}
		if err := s.keep(data); err != nil {
			s.wrong = "they cannot be kept: " + err.Error()
		}
	case lab.SubjectCaptured:
		s.end = &lab.Captured{}
		if err := json.Unmarshal(data, s.end); err != nil {
			s.end, s.wrong = nil, pcapng.ErrMalformed.Error()
		} else {
			printable.Each(s.end, lab.Text)
		}
	}
	c.came(host, s.end != nil || s.wrong != "")
}

// keep keeps bytes that a host sends.
func (s *source) keep(data []byte) error {
	if s.spool == nil {
		file, err := ownfile.Nameless(0)
		if err != nil {
			return err
		}
		s.spool = file
	}
	written, err := s.spool.Write(data)
	s.size += int64(written)
	return err
}

// Finish writes the file, in the order of the packets' times on the controller's clock.  It returns what is not in it,
// a sentence for each host.
func (c *Collector) Finish(application string, clocks map[string]record.Clock) (lacks []string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.file.Close()
	defer c.discard()
	out := bufio.NewWriterSize(&retryingFile{c.file}, 1<<18)
	err = c.merge(&pcapng.Writer{To: out}, application, "", clocks)
	if err = errors.Join(err, out.Flush()); err != nil {
		return nil, fmt.Errorf("capture: %w", err)
	}
	return c.lacks(), nil
}

// lack describes what is missing of a host; "" for nothing.
func (s *source) lack(most int64) string {
	var texts []string
	if s.wrong != "" {
		texts = append(texts, "packets are missing: "+s.wrong)
	}
	switch end := s.end; {
	case end == nil && s.wrong == "":
		texts = append(texts, "its packets end early: it was lost")
	case end == nil:
	case end.Error != "":
		texts = append(texts, "packets are missing: "+end.Error)
	case end.Missing > 0:
		texts = append(texts, fmt.Sprintf("%d packets are missing, since they were too many at a time", end.Missing))
	}
	if s.end != nil && s.end.Beyond > 0 {
		texts = append(
			texts,
			fmt.Sprintf("its last %d packets are cut, since a host has room for %dMiB here", s.end.Beyond, most>>20),
		)
	}
	return strings.Join(texts, "; ")
}

// retryingFile is a file, or a pipe with a reader that may take some time.
type retryingFile struct{ *os.File }

func (p *retryingFile) Write(data []byte) (int, error) {
	_ = p.SetWriteDeadline(time.Now().Add(writeTime)) // what is no pipe has none
	return p.File.Write(data)
}
