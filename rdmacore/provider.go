package rdmacore

// #include <stdlib.h>
// #include "core/core.h"
import "C"

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unicode"
	"unsafe"
)

// Provider is one implementation of librdmacm and libibverbs.  Several may be open at once.
type Provider struct {
	c     *C.struct_core_provider
	name  string
	clock *Clock
	link  string // of Links; "" on a real fabric
	// fabric and shared are those of Fabric.
	fabric string
	shared bool
	legal  Legal
	// captures is true when the provider writes to a Capture.
	captures bool

	// objects finds the Go object of a QP, CQ or SRQ that an asynchronous event names.  Its lock is also
	// held while such an event is fetched, so that the address cannot have been reused meanwhile.  It is taken
	// after a device's async.mu, and nothing else is while it is held.
	objects struct {
		sync.Mutex
		known map[uintptr]any
	}

	held      heldEvents
	cqUsers   sync.Mutex // guards, for all CQs, how many QPs use them
	migrating sync.Mutex // one id at a time changes its channel
	resolver  *Resolver  // all questions are of it

	// devices is filled by the first Devices that finds any, and is kept until Close. librdmacm keeps the devices
	// of its ids open as long as the list is. A removed device (FaultRemoveDevice) is not in it, but can still be
	// found by its handle.
	devices struct {
		sync.Mutex
		lists    []**C.struct_ibv_context
		known    []*Device
		byHandle map[*C.struct_ibv_context]*Device
	}
}

// The names of providers.
const (
	Soft  = "soft"
	Verbs = "verbs"
)

// Providers lists the names that Open accepts.
func Providers() []string { return []string{Soft, Verbs} }

// Option is a choice of Open that only soft has; verbs refuses it with EOPNOTSUPP.
type Option func(*C.struct_core_options)

// WithVirtualClock opens soft with a clock that moves only when all its actors wait (see Clock).
func WithVirtualClock() Option {
	return func(options *C.struct_core_options) { options.virtual_clock = true }
}

// WithSeed draws soft's random numbers (start PSNs, queue pair numbers, keys) from seed, so that a run
// repeats.
func WithSeed(seed uint64) Option {
	return func(options *C.struct_core_options) { options.seeded, options.seed = true, C.uint64_t(seed) }
}

// LinkLocal copies each message at once. On LinkPackets messages are packets in flight, and on LinkUDP such packets in
// real UDP sockets.
const (
	LinkLocal   = "local"
	LinkPackets = "packets"
	LinkUDP     = "udp"
)

// Links lists what may carry messages between the queue pairs of one soft provider, in the order of C's core_link.
func Links() []string { return []string{LinkLocal, LinkPackets, LinkUDP} }

// LinkText describes the timing of a link of soft: its delay, its rate, and what a measurement over it measures.
func LinkText(link string) string {
	switch link {
	case LinkPackets:
		return fmt.Sprintf(
			"packets of the path MTU within one process, each with a delay of %d ns, without a limit of rate. On "+
				"the wall clock timers add about 1 ms to a packet, on a virtual clock nothing",
			C.CORE_LINK_PACKETS_DELAY,
		)
	case LinkUDP:
		return "packets of the path MTU in UDP sockets, with the delay and the rate of this host's CPU and of the " +
			"network"
	}
	return "each message copied whole, at once, without a delay or a limit of rate: the speed of this host's CPU"
}

// WithLink chooses one of Links for soft.  "local" copies each message at once and whole.  "packets" sends it in
// packets of the path MTU with every byte of RoCE v2, which take time and can be lost one by one.  "udp" sends those
// packets through UDP sockets of this host, to another process, another host or a kernel.  Time is real there:
// WithVirtualClock is rejected.
func WithLink(name string) Option {
	return func(options *C.struct_core_options) {
		options.link = uint32(max(0, slices.Index(Links(), name)))
	}
}

// WithFabric lets ids on LinkUDP connect to those of all providers of this fabric on this host, in any process.  A
// name has letters, digits, '.', '_' and '-', at most CORE_FABRIC_MAX.  Without it a provider is a fabric of its own.
func WithFabric(name string) Option {
	return func(options *C.struct_core_options) {
		if len(name) >= len(options.fabric) {
			name = "/" // is refused as well
		}
		for i := range len(name) {
			options.fabric[i] = C.char(name[i])
		}
	}
}

// WithSharedFabric trusts every user of this host in the fabric. Ids connect to listeners of all users, and all users
// to listeners here, if they share the fabric, too. Without it ids connect to listeners of their own user and of root.
func WithSharedFabric() Option {
	return func(options *C.struct_core_options) { options.shared = true }
}

// CheckFabric validates the name of a fabric; "", a fabric of one provider, is valid.
func CheckFabric(name string) error {
	const most = C.CORE_FABRIC_MAX
	if len(name) > most {
		return fmt.Errorf("the name of a fabric has %d letters at most, and %q has %d", most, name, len(name))
	}
	for _, r := range name {
		if r >= 0x80 || !(unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-", r)) {
			return fmt.Errorf("%q is not valid in the name of a fabric: use letters, digits, '.', '_' and '-'", r)
		}
	}
	return nil
}

// Link is the one of Links that carries messages between soft's queue pairs; "" on a real fabric.
func (p *Provider) Link() string { return p.link }

// Fabric is the name of what soft is part of on LinkUDP (WithFabric), "" for a fabric of its own; shared is set by
// WithSharedFabric.
func (p *Provider) Fabric() (name string, shared bool) { return p.fabric, p.shared }

// SendsPackets reports whether soft's messages go in packets, each of which may be lost by itself.
func (p *Provider) SendsPackets() bool { return p.link != "" && p.link != Links()[0] }

// Open opens a provider by name.  "soft" works everywhere; "verbs" needs librdmacm and libibverbs, and the error names
// the packages to install when they are absent (ENOENT).  Each open soft is a host of its own.  The
// caller closes it.
func Open(name string, options ...Option) (*Provider, error) {
	const op = "open provider"
	var chosen C.struct_core_options
	for _, option := range options {
		option(&chosen)
	}
	defer C.free(unsafe.Pointer(chosen.capture_label))
	var c *C.struct_core_provider
	var why [512]C.char
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	if result := C.core_open(cname, &chosen, &c, &why[0], C.size_t(len(why))); result < 0 {
		errno := syscall.Errno(-result)
		reason := C.GoString(&why[0])
		if reason == "" && errno == syscall.ENOENT {
			// No file is missing here, so the errno's own words would mislead.
			return nil, &Error{Errno: errno, Why: fmt.Sprintf("no provider is called %q; there are %s", name,
				strings.Join(Providers(), ", "))}
		}
		return nil, &Error{Op: op, Errno: errno, Why: reason}
	}
	p := &Provider{
		c: c, name: name, captures: chosen.capture != nil, fabric: C.GoString(&chosen.fabric[0]),
		shared: bool(chosen.shared),
		legal:  Legal{Seed: uint64(chosen.legal_seed), Choices: uint32(chosen.legal)},
	}
	p.resolver = newResolver(p, maxLookups)
	if p.CanFault() {
		p.link = Links()[chosen.link]
	}
	p.objects.known = make(map[uintptr]any)
	p.clock = newClock(p, bool(chosen.virtual_clock))
	if bool(chosen.seeded) && p.clock.virtual != nil {
		p.clock.virtual.draws = rand.New(rand.NewPCG(uint64(chosen.seed), 0))
		p.clock.virtual.draw()
	}
	return p, nil
}

// Name returns the name the provider was opened by.
func (p *Provider) Name() string {
	if p == nil {
		return ""
	}
	return p.name
}

// Live counts the objects made through this provider that are not freed yet.
func (p *Provider) Live() Live {
	live := make(Live)
	if p == nil || p.c == nil {
		return live
	}
	for kind := range kinds {
		if count := int64(C.core_live(p.c, uint32(kind))); count != 0 {
			live[kind] = count
		}
	}
	return live
}

// Close closes the provider.  EBUSY, with the counts in the error, while objects live.  What GetAddrInfo has given up
// waiting for ends by itself later, at the latest after the resolver's timeouts.
func (p *Provider) Close() error {
	const op = "close provider"
	if p == nil || p.c == nil {
		return closed(op, "provider")
	}
	if live := p.Live(); live.Total() != 0 {
		return fail(op, syscall.EBUSY, "still alive: %s", live)
	}
	p.freeDevices()
	if err := check(op, int(C.core_close(p.c))); err != nil {
		return err
	}
	p.c = nil
	return nil
}

func (p *Provider) remember(handle unsafe.Pointer, object any) {
	p.objects.Lock()
	p.objects.known[uintptr(handle)] = object
	p.objects.Unlock()
}

// destroy is for what may be in use: destroy frees the objects, and if it does, they are forgotten with their
// asynchronous events.  No event is read meanwhile, for it would have to be kept or dropped according to what comes of
// it.
func (p *Provider) destroy(destroy func() error, handles ...unsafe.Pointer) error {
	p.objects.Lock()
	err := destroy()
	var gone []any
	if err == nil {
		for _, handle := range handles {
			gone = append(gone, p.objects.known[uintptr(handle)])
			delete(p.objects.known, uintptr(handle))
		}
	}
	p.objects.Unlock()
	for _, object := range gone {
		p.discard(object)
	}
	return err
}

// discard drops the events that were read of an object that is known no more, as the kernel does with those that
// were not.
func (p *Provider) discard(object any) {
	p.devices.Lock()
	defer p.devices.Unlock()
	for _, device := range p.devices.byHandle {
		device.async.mu.Lock()
		device.async.discard(func(e AsyncEvent) bool { return e.of(object) })
		device.async.mu.Unlock()
	}
}

// Kind is a kind of core object.
type Kind int

// Live is the number of live objects of each kind; kinds without any are absent.
type Live map[Kind]int64

// Total is the number of live objects.
func (l Live) Total() int64 {
	var total int64
	for _, count := range l {
		total += count
	}
	return total
}

// String lists the counts in the order of the kinds, "2 QP, 1 MR", or "none".
func (l Live) String() string {
	var parts []string
	for _, row := range kindNames.rows {
		if count := l[row.value]; count != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count, row.name))
		}
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// foreign is the error of an object that another provider created. Each has memory and numbers of its own, and
// librdmacm would follow pointers that are not its own.
func foreign(op, kind string, of, here *Provider) *Error {
	whose := "another " + of.Name()
	if of.Name() != here.Name() {
		whose = fmt.Sprintf("the provider %s", of.Name())
	}
	return fail(op, syscall.EINVAL, "the %s belongs to %s, the id to %s", kind, whose, here.Name())
}
