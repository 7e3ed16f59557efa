package trace

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdmarun/host/trace/calls"
)

// maxHandles bounds the objects of a process that have numbers.
const maxHandles = 1 << 20

// maxThreads bounds the threads of a process of which something is known.
const maxThreads = 1 << 16

const (
	// completionWords are those of a completion in a record (rdmacore/trace/data.c).
	completionWords = 5
	// maxPolled bounds the words of completions that are kept of a poll.
	maxPolled = 1 << 16 * completionWords
)

// process is what is known of a process.
type process struct {
	program     string // its name; "" if it is not known
	pid, parent int
	handles     map[handle]known
	next        map[string]int
	open        map[uint32]*Call // by thread: the call that it is in
	last        map[uint32]int64 // by thread: the end of its last call
	images      []image
	sites       map[[frames]uint64]Site // by the addresses of a record
	forkedFrom  *process                // the parent, if it is traced; nil after the first record
	executed    bool                    // in place of a program that is traced; false after the first record
	polled      map[uint32][]uint64     // by thread: the completions of a poll before its last record
}

// known is what is known of an object.
type known struct {
	name      Word
	destroyed bool
}

// handle is an object of a process by its address.
type handle struct {
	kind    string
	address uint64
}

func newProcess(pid, parent int) *process {
	return &process{
		pid: pid, parent: parent, handles: map[handle]known{}, next: map[string]int{}, open: map[uint32]*Call{},
		last: map[uint32]int64{}, sites: map[[frames]uint64]Site{},
		polled: map[uint32][]uint64{},
	}
}

// name is the name of an object: its kind and a number, in the order in which the process has shown them. A destroyed
// object keeps its name as an argument; as a result its address is that of a new one.
func (p *process) name(kind string, address uint64, result bool) any {
	if address == 0 {
		return nil
	}
	h := handle{kind, address}
	object, there := p.handles[h]
	if !there || object.destroyed && result {
		if len(p.handles) >= maxHandles {
			return Word(fmt.Sprintf("%s@%#x", kind, address))
		}
		p.next[kind]++
		object = known{name: Word(fmt.Sprintf("%s#%d", kind, p.next[kind]))}
		p.handles[h] = object
	}
	return object.name
}

// destroy notes that an object does not exist any more.
func (p *process) destroy(kind string, address uint64) {
	h := handle{kind, address}
	if object, there := p.handles[h]; there {
		object.destroyed = true
		p.handles[h] = object
	}
}

// groupProcess is the group of what is no call of the libraries (Options.Processes).
const groupProcess = "process"

// decoder makes calls of records.
type decoder struct {
	table   *calls.Table
	began   int64
	options Options
	known   map[int]*process // those that run, for their children
	files   map[string]*symbols
	sites   map[[frames]frame]Site
	decoded posted
}

func newDecoder(table *calls.Table, began int64, options Options) *decoder {
	return &decoder{
		table: table, began: began, options: options, known: map[int]*process{}, files: map[string]*symbols{},
		sites: map[[frames]frame]Site{},
	}
}

// begin is the beginning of a process.
func (d *decoder) begin(p *process) {
	p.forkedFrom = d.known[p.parent]
	p.executed = d.known[p.pid] != nil
	d.known[p.pid] = p
}

// inherit gives a forked process the objects that its parent had.  It is called before the first record of the process,
// when all calls that the parent made before are decoded.
func (p *process) inherit() {
	if parent := p.forkedFrom; parent != nil {
		maps.Copy(p.handles, parent.handles)
		maps.Copy(p.next, parent.next)
		p.forkedFrom = nil
	}
}

// end is the end of a process, which a signal may have killed: calls that have not returned are shown.
func (d *decoder) end(p *process, killed bool) {
	if d.known[p.pid] == p {
		delete(d.known, p.pid)
	}
	now := time.Duration(monotonic() - d.began)
	for _, thread := range slices.Sorted(maps.Keys(p.open)) {
		call := p.open[thread]
		call.End = now
		d.options.Take(call)
	}
	clear(p.open)
	if d.options.Processes {
		d.options.Take(&Call{
			Process: p.pid, Name: "exit", Group: groupProcess, Start: now, End: now, Killed: killed,
		})
	}
}

// decode returns the call of a record; nil for one that is not shown.
func (d *decoder) decode(p *process, record *raw) *Call {
	p.inherit()
	if p.executed {
		p.executed = false
		d.execute(p, record)
	}
	switch record.kind {
	case kindEnter:
		record.unfinished = true
		if call := d.call(p, record); call != nil && len(p.open) < maxThreads {
			call.Start = call.End
			p.open[record.thread] = call
		}
		return nil
	case kindCall:
		if record.flags&flagNested == 0 {
			delete(p.open, record.thread)
		}
	case kindLost:
		note := d.note(p, record, fmt.Sprintf("%d calls are missing: the program made them faster than they are read",
			record.folded))
		note.Lost = record.folded
		return note
	case kindUnseen:
		r := &reader{words: record.words}
		text, _ := r.text().(Text)
		return d.note(p, record, "not seen: "+string(text))
	case kindImage:
		d.addImage(p, record)
		return nil
	case kindFork:
		if !d.options.Processes {
			return nil
		}
		at := time.Duration(record.end - d.began)
		return &Call{
			Process: p.pid, Thread: int(record.thread), Name: "fork", Group: groupProcess, Start: at, End: at,
			Site: d.site(p, record.site),
		}
	case kindData, kindPolls:
		if len(p.open) > 0 {
			delete(p.open, record.thread)
		}
	default:
		return nil
	}
	if record.flags&flagNested != 0 && !d.options.Nested {
		d.learn(p, record)
		return nil
	}
	return d.call(p, record)
}

// isWhole reports whether a record has all of its poll. A poll of many completions has several records: the last one
// gets the completions of those before it. If a record of a poll is lost, those before it are left out, too.
func (p *process) isWhole(record *raw) bool {
	const counts, before, header = 1, 2, 3 // words of a poll
	continues := record.flags&flagContinues != 0
	if len(record.words) < header || len(p.polled) == 0 && !continues {
		return true
	}
	earlier := p.polled[record.thread]
	delete(p.polled, record.thread)
	if record.words[before] != uint64(len(earlier)/completionWords) {
		earlier = nil
	}
	all := append(earlier, record.words[header:]...)
	if continues {
		if len(p.polled) < maxThreads && len(all) <= maxPolled {
			p.polled[record.thread] = all
		}
		return false
	}
	record.words = append(record.words[:header], all...)
	record.words[counts] = record.words[counts]>>32<<32 | uint64(len(all)/completionWords)
	return true
}

// execute reports that a process runs another program now. It makes a ring of its own at its first call, when those
// that the program before it has made are decoded.
func (d *decoder) execute(p *process, record *raw) {
	if d.options.Processes {
		at := time.Duration(record.end - d.began)
		d.options.Take(&Call{Process: p.pid, Name: "exec", Group: groupProcess, Start: at, End: at})
	}
}

func (d *decoder) note(p *process, record *raw, text string) *Call {
	return &Call{
		Process: p.pid, Thread: int(record.thread), Note: text, End: time.Duration(record.end - d.began),
		Start: time.Duration(record.end - d.began),
	}
}

// learn notes which object does not exist after a call that is not shown. Only handles precede it.
func (d *decoder) learn(p *process, record *raw) {
	if record.number == 0 || int(record.number) > len(d.table.Calls) || record.result != 0 {
		return
	}
	description := &d.table.Calls[record.number-1]
	for i, value := range description.Values[:min(len(record.words), len(description.Values))] {
		if value.Name == description.Frees {
			p.destroy(value.Type, record.words[i])
		}
	}
}

// call decodes a record about a call.
func (d *decoder) call(p *process, record *raw) *Call {
	if record.number == 0 || int(record.number) > len(d.table.Calls) {
		return nil
	}
	description := &d.table.Calls[record.number-1]
	work, isWork := inNumbers[description.Shown]
	if isWork && record.kind == kindEnter {
		return nil // the library writes none
	}
	if isWork && work.request == nil && !p.isWhole(record) {
		return nil
	}
	call := &d.decoded.call
	if !isWork || !d.options.Numbers {
		call = &Call{}
	}
	*call = Call{
		Process: p.pid, Thread: int(record.thread), Program: p.program, Name: description.Shown,
		Group: description.Group,
		Start: time.Duration(record.start - d.began), End: time.Duration(record.end - d.began),
		Unfinished: record.unfinished, Nested: record.flags&flagNested != 0,
		InHandler: record.flags&flagInHandler != 0, Polls: record.folded,
		Site: d.site(p, record.site),
	}
	// The times of a thread go forward, also where a better pair of times has corrected the clock.
	if last := p.last[record.thread]; record.end < last {
		call.End = time.Duration(last - d.began)
	} else if len(p.last) < maxThreads {
		p.last[record.thread] = record.end
	}
	if call.End < call.Start {
		call.Start = call.End
	}
	if record.kind == kindPolls {
		queue := p.name("cq", first(record.words), false)
		call.Result, call.Queue = int64(0), Name(queue)
		if !d.options.Numbers {
			call.Arguments = []Field{{"", queue}}
		}
		return call
	}
	if !record.unfinished {
		d.result(call, p, description, record)
	}
	r := &reader{words: record.words, process: p}
	if isWork {
		work.decode(r, call, &d.decoded, d.options.Numbers)
		return call
	}
	if decode := byHand[call.Name]; decode != nil {
		decode(r, call)
		return call
	}
	if d.options.Brief && description.Frees == "" {
		return call
	}
	d.values(call, r, description, record)
	return call
}

// values reads arguments and results as the table has them.
func (d *decoder) values(call *Call, r *reader, description *calls.Call, record *raw) {
	address := map[string]uint64{}
	for _, value := range description.Values {
		if value.Out || value.Get {
			continue
		}
		if value.Name == description.Frees && len(r.words) > 0 {
			address[value.Name] = r.words[0]
		}
		d.add(&call.Arguments, r, value)
	}
	if record.kind == kindEnter || call.Failed() || record.unfinished {
		return
	}
	r.results = true
	for _, value := range description.Values {
		if value.Out || value.Get {
			d.add(&call.Results, r, value)
		}
	}
	restrict(call)
	for _, value := range description.Values {
		if value.Name == description.Frees {
			r.process.destroy(value.Type, address[value.Name])
		}
	}
}

// add reads a value, and adds it unless it is not worth showing.
func (d *decoder) add(fields *[]Field, r *reader, value calls.Value) {
	shown := r.value(d.table, value)
	if value.Hidden || value.Nonzero && isZero(shown) {
		return
	}
	name := value.Name
	if _, isStruct := shown.(Struct); isStruct && !value.Out {
		name = ""
	}
	if value.Kind == calls.Handle && shown != nil && !value.Out && !value.Get {
		name = ""
	}
	*fields = append(*fields, Field{name, shown})
}

func isZero(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case int64:
		return v == 0
	case uint64:
		return v == 0
	case bool:
		return !v
	case hex:
		return v == 0
	case Word:
		return v == "0" || v == ""
	case Bytes:
		return v.Length == 0
	}
	return false
}

// result decodes what a call returned, and why it failed.
func (d *decoder) result(call *Call, p *process, description *calls.Call, record *raw) {
	result, returned := description.Result, record.result
	errno := syscall.Errno(record.errno)
	if errno <= 0 || errno >= 1000 {
		errno = 0
	}
	switch {
	case result.C == "void":
	case result.Kind == calls.Handle:
		call.Result = p.name(result.Type, uint64(returned), true)
		if returned == 0 {
			call.Errno = errno
		}
	case strings.HasSuffix(result.C, "*"):
		if returned != 0 {
			call.Result = hex(returned)
		} else {
			call.Errno = errno
		}
	case result.Kind == calls.Port:
		call.Result = int64(bigEndian16(uint16(returned)))
	case result.Kind == calls.Hex:
		call.Result = hex(returned)
	case description.Count:
		call.Result = returned
		if returned < 0 {
			call.Errno = errno
			if returned != -1 && returned > -1000 {
				call.Errno = syscall.Errno(-returned)
			}
		}
	default:
		call.Result = returned
		switch {
		case returned == -1 || returned < -1000 || returned >= 1000:
			call.Errno = errno
		case returned < 0:
			call.Errno = syscall.Errno(-returned)
		case returned > 0:
			call.Errno = syscall.Errno(returned)
		}
	}
}

func bigEndian16(value uint16) uint16 {
	var bytes [2]byte
	binary.NativeEndian.PutUint16(bytes[:], value)
	return binary.BigEndian.Uint16(bytes[:])
}

func bigEndian32(value uint32) uint32 {
	var bytes [4]byte
	binary.NativeEndian.PutUint32(bytes[:], value)
	return binary.BigEndian.Uint32(bytes[:])
}

func first(words []uint64) uint64 {
	if len(words) == 0 {
		return 0
	}
	return words[0]
}

// reader takes words off a record. After the last one there are zeros: the record of a hostile program, or of a call
// with too many arguments.
type reader struct {
	words   []uint64
	process *process
	results bool // what follows are results
	// datagram is set for requests to send datagrams.
	datagram bool
}

func (r *reader) name(kind string, address uint64) any {
	return r.process.name(kind, address, r.results)
}

func (r *reader) word() uint64 {
	if len(r.words) == 0 {
		return 0
	}
	word := r.words[0]
	r.words = r.words[1:]
	return word
}

// maxBytes is TRACE_BYTES of rdmacore/trace/trace.h.
const maxBytes = 256

// bytes reads bytes; nil for NULL.
func (r *reader) bytes() (bytes []byte, length uint64) {
	length = r.word()
	if length == 1<<64-1 {
		return nil, 0
	}
	kept := int(min(length, maxBytes, uint64(8*len(r.words))))
	bytes = make([]byte, 0, kept+8)
	for range (kept + 7) / 8 {
		bytes = binary.NativeEndian.AppendUint64(bytes, r.word())
	}
	return bytes[:kept], length
}

func (r *reader) text() any {
	bytes, _ := r.bytes()
	if bytes == nil {
		return nil
	}
	return Text(bytes)
}

// gid is an address in the form of IPv6, or of IPv4 where it stands for one.
func (r *reader) gid() any {
	var bytes [16]byte
	binary.NativeEndian.PutUint64(bytes[:], r.word())
	binary.NativeEndian.PutUint64(bytes[8:], r.word())
	return Word(netip.AddrFrom16(bytes).String())
}

func (r *reader) sockaddr() any {
	bytes, _ := r.bytes()
	if len(bytes) < 2 {
		return nil
	}
	switch family := binary.NativeEndian.Uint16(bytes); {
	case family == unix.AF_INET && len(bytes) >= 16:
		address, _ := netip.AddrFromSlice(bytes[4:8])
		return Word(netip.AddrPortFrom(address, binary.BigEndian.Uint16(bytes[2:])).String())
	case family == unix.AF_INET6 && len(bytes) >= 28:
		address, _ := netip.AddrFromSlice(bytes[8:24])
		if scope := binary.NativeEndian.Uint32(bytes[24:]); scope != 0 {
			address = address.WithZone(fmt.Sprint(scope))
		}
		return Word(netip.AddrPortFrom(address, binary.BigEndian.Uint16(bytes[2:])).String())
	case family == unix.AF_IB && len(bytes) >= 40:
		address, _ := netip.AddrFromSlice(bytes[8:24])
		return Word("ib:" + address.String())
	default:
		return Word(fmt.Sprintf("family %d", family))
	}
}

// value reads a value of the table.
func (r *reader) value(table *calls.Table, value calls.Value) any {
	switch value.Kind {
	case calls.String:
		return r.text()
	case calls.Bytes:
		bytes, length := r.bytes()
		if bytes == nil {
			return nil
		}
		return Bytes{bytes, length}
	case calls.Sockaddr:
		return r.sockaddr()
	case calls.GID:
		return r.gid()
	case calls.Struct:
		if r.word() == 0 {
			return nil
		}
		fields := Struct{}
		for _, field := range table.Structs[value.Type] {
			shown := r.value(table, field)
			if !field.Nonzero || !isZero(shown) {
				fields = append(fields, Field{field.Name, shown})
			}
		}
		return fields
	}
	word := r.word()
	switch value.Kind {
	case calls.Handle:
		return r.name(value.Type, word)
	case calls.Pointer:
		if word == 0 {
			return nil
		}
		return hex(word)
	case calls.Enum, calls.Flags:
		if value.Nonzero && word == 0 {
			return word // not worth a name
		}
		return named(value.Type, word)
	case calls.Bool:
		return word != 0
	case calls.Hex:
		return hex(word)
	case calls.Port:
		return int64(bigEndian16(uint16(word)))
	case calls.Int:
		return int64(word)
	}
	return word
}
