package capture

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"rdmarun/host/lab"
	"rdmarun/host/ownfile"
	"rdmarun/host/pcapng"
	"rdmarun/host/scenario"
	"rdmarun/rdmacore"
)

// Budgets of captures of failures.
const (
	// maxAround is how much of a case is kept in memory. Twice a third of it is for packets before a failure, and
	// a sixth for those after it. A twelfth is for the blocks of interfaces, and a twelfth for those of their
	// statistics.
	maxAround             = 12 << 20
	third, sixth, twelfth = 3, 6, 12
	// MaxFiles is how many files a run makes, MaxWritten how many bytes they have: of failures that repeat, the first
	// are enough.
	MaxFiles, MaxWritten = 100, maxBytes
	// maxName bounds the name of a case in that of its file.
	maxName = 180
)

// Failures makes a file of the packets around each failure, in a folder.
type Failures struct {
	folder, application, suffix string
	snapLength                  uint32
	mu                          sync.Mutex
	made                        int
	written                     int64
	full                        int               // failures without a file, since there are enough
	names                       map[string]string // cases, by the names of their files
}

// OnFailure captures to a folder, which is made.  suffix follows the name of a case in that of its file.
func OnFailure(folder, application, suffix string, snapLength uint32) (*Failures, error) {
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	switch info, err := os.Stat(folder); {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fmt.Errorf("%s is a file, and each failure has a file of its own: name a folder", folder)
	}
	return &Failures{
		folder: folder, application: application, suffix: suffix, snapLength: snapLength,
		names: make(map[string]string),
	}, nil
}

// Beyond is how many failures have no file because the run has made as many as it may.
func (f *Failures) Beyond() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.full
}

// Begin implements scenario.FailureCapture.
func (f *Failures) Begin(id string, number int, _ []string) (scenario.Recording, error) {
	r := &recording{failures: f, path: f.path(id, number)}
	return r, r.begin(f.application, lab.Capture{SnapLength: f.snapLength, Most: maxAround})
}

// path is the file of a run of a case.
func (f *Failures) path(id string, number int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	harmless := ownfile.Harmless(id)
	harmless = harmless[:min(len(harmless), maxName)]
	name := harmless
	for n := 2; f.names[name] != "" && f.names[name] != id; n++ {
		name = fmt.Sprintf("%s=%d", harmless, n)
	}
	f.names[name] = id
	name += f.suffix
	if number > 0 {
		name += fmt.Sprintf(".%d", number+1)
	}
	return filepath.Join(f.folder, name+".pcapng")
}

// reserve reports whether another file may be made, of so many bytes.
func (f *Failures) reserve(size int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.made == MaxFiles || f.written+size > MaxWritten {
		f.full++
		return false
	}
	f.made++
	f.written += size
	return true
}

// recording writes what is kept of one run of a case to its file.
type recording struct {
	failures *Failures
	path     string
	kept
}

// kept are the last packets of one run of a case, and some that come after its failure.
type kept struct {
	tap      *tap
	most     int
	failedAt atomic.Uint64 // by the clock of the packets
	// named are the blocks of interfaces, counted those of their statistics.
	named, counted []byte
	// before are the last packets, in before[1] the later ones: when that is full, it becomes before[0].
	before [2][]byte
	counts [2]int // of the packets there
	after  []byte
	// earlier are those that are not kept any more, later those that came when there was no more room.
	earlier, later int
}

// never is the time of a failure that has not happened.
const never = 1<<64 - 1

// begin begins to keep what providers send.
func (r *kept) begin(application string, wanted lab.Capture) (err error) {
	r.most = int(min(wanted.Most, maxAround))
	r.failedAt.Store(never)
	r.tap, err = open(
		rdmacore.CaptureOptions{Application: application, SnapLength: wanted.SnapLength}, r.add, func() {},
	)
	return err
}

// Capture implements scenario.Recording.
func (r *kept) Capture() *rdmacore.Capture { return r.tap.capture }

// Failed implements scenario.Recording.
func (r *kept) Failed(at uint64) { r.failedAt.CompareAndSwap(never, at) }

// any reports whether there are packets.
func (r *kept) any() bool { return len(r.before[1])+len(r.after) > 0 }

// size is how many bytes are kept.
func (r *kept) size() (bytes int64) {
	for _, blocks := range [][]byte{r.named, r.before[0], r.before[1], r.after, r.counted} {
		bytes += int64(len(blocks))
	}
	return bytes
}

// add keeps a block, or not.
func (r *kept) add(block []byte) {
	at, malformed := pcapng.PacketTime(block)
	switch kind := pcapng.KindOf(block); {
	case kind == pcapng.KindInterface && len(r.named)+len(block) <= r.most/twelfth:
		r.named = append(r.named, block...)
	case kind == pcapng.KindStatistics && len(r.counted)+len(block) <= r.most/twelfth:
		r.counted = append(r.counted, block...)
	case kind != pcapng.KindPacket || malformed != nil:
	case at <= r.failedAt.Load():
		r.addBefore(block)
	case len(r.after)+len(block) <= r.most/sixth:
		r.after = append(r.after, block...)
	default:
		r.later++
	}
}

func (r *kept) addBefore(block []byte) {
	if len(r.before[1])+len(block) > r.most/third {
		r.earlier += r.counts[0]
		r.before[0], r.before[1] = r.before[1], r.before[0][:0]
		r.counts[0], r.counts[1] = r.counts[1], 0
	}
	r.before[1] = append(r.before[1], block...)
	r.counts[1]++
}

// End implements scenario.Recording.
func (r *recording) End(failed bool) (path string, err error) {
	totals, wrong := r.tap.close()
	if !failed {
		return "", remove(r.path)
	}
	if !r.any() || !r.failures.reserve(r.size()) {
		return "", errors.Join(wrong, remove(r.path))
	}
	if err := writeFile(r.path, func(w *pcapng.Writer) error { return r.write(w, totals.Missing) }); err != nil {
		return "", errors.Join(wrong, err)
	}
	return r.path, wrong
}

// writeFile makes the file of a failure, whole or not at all: a part of a block cannot be read.
func writeFile(path string, write func(w *pcapng.Writer) error) error {
	file, err := ownfile.Create(path, ownfile.Private)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	if err := errors.Join(write(&pcapng.Writer{To: out}), out.Flush(), file.Close()); err != nil {
		return errors.Join(err, remove(path))
	}
	return nil
}

// aroundFailure begins the comment of a file.
const aroundFailure = "packets around the failure"

func (r *recording) write(w *pcapng.Writer, missing uint64) error {
	if err := w.Section(pcapng.Section{
		Application: r.failures.application,
		Comment:     aroundFailure + leftOut(uint64(r.earlier), uint64(r.later), missing),
	}); err != nil {
		return err
	}
	return r.blocks(w.To)
}

// leftOut describes how many packets are not in a file; "" for none.
func leftOut(earlier, later, missing uint64) (text string) {
	for _, each := range []struct {
		count uint64
		what  string
	}{
		{earlier, "earlier ones are left out"}, {later, "later ones are left out"},
		{missing, "are missing, since they were too many at a time"},
	} {
		if each.count > 0 {
			text += fmt.Sprintf("; %d %s", each.count, each.what)
		}
	}
	return text
}

// blocks writes what is kept, in its order.
func (r *kept) blocks(out io.Writer) error {
	for _, blocks := range [][]byte{r.named, r.before[0], r.before[1], r.after, r.counted} {
		if _, err := out.Write(blocks); err != nil {
			return err
		}
	}
	return nil
}

// remove removes what an earlier run has left of a case that does not fail any more.
func remove(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return nil
	}
	return os.Remove(path)
}
