package rdmacore

// #include <sys/socket.h>
// #include "core/core.h"
// #include <netdb.h>
// #include <stdlib.h>
import "C"

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"unsafe"
)

// toCAddress converts an address; the zero AddrPort becomes "none".  An IPv4-mapped IPv6 address is
// taken as IPv4, since rdma_cm finds devices by the address of their network interface.
func toCAddress(address netip.AddrPort) C.struct_core_address {
	var c C.struct_core_address
	ip := address.Addr().Unmap()
	if !ip.IsValid() {
		return c
	}
	c.port = C.uint16_t(address.Port())
	if ip.Is4() {
		c.family = C.AF_INET
		raw := ip.As4()
		for i, b := range raw {
			c.ip[i] = C.uint8_t(b)
		}
		return c
	}
	c.family = C.AF_INET6
	for i, b := range ip.As16() {
		c.ip[i] = C.uint8_t(b)
	}
	c.scope_id = C.uint32_t(scopeOf(ip.Zone()))
	return c
}

// fromCAddress is the reverse; a scope becomes a zone of digits.
func fromCAddress(c *C.struct_core_address) netip.AddrPort {
	switch c.family {
	case C.AF_INET:
		var raw [4]byte
		for i := range raw {
			raw[i] = byte(c.ip[i])
		}
		return netip.AddrPortFrom(netip.AddrFrom4(raw), uint16(c.port))
	case C.AF_INET6:
		var raw [16]byte
		for i := range raw {
			raw[i] = byte(c.ip[i])
		}
		ip := netip.AddrFrom16(raw)
		if c.scope_id != 0 {
			ip = ip.WithZone(strconv.FormatUint(uint64(c.scope_id), 10))
		}
		return netip.AddrPortFrom(ip, uint16(c.port))
	}
	return netip.AddrPort{}
}

// scopeOf turns an IPv6 zone, the name or the number of an interface, into its number; 0 if there is none.
func scopeOf(zone string) uint32 {
	if zone == "" {
		return 0
	}
	if number, err := strconv.ParseUint(zone, 10, 32); err == nil {
		return uint32(number)
	}
	if link, err := net.InterfaceByName(zone); err == nil {
		return uint32(link.Index)
	}
	return 0
}

// AddrInfoFlags select the addresses to look for (the RAI_ flags of rdma_getaddrinfo(3)).
type AddrInfoFlags int

// AddrInfo is an address with all that CreateEP needs of it (struct rdma_addrinfo).  As hints, Flags, Family,
// QPType, PortSpace and the addresses count.
type AddrInfo struct {
	Flags           AddrInfoFlags
	Family          int // AF_INET, AF_INET6; 0 for any
	QPType          QPType
	PortSpace       PortSpace
	Source          netip.AddrPort
	Destination     netip.AddrPort
	SourceName      string // canonical names
	DestinationName string
	Route           []byte // path records, as SetIBPath takes them
	Connect         []byte // what goes before the private data of the first Connect
}

// maxAddrInfos is how many results are handed on; librdmacm itself has one.
const maxAddrInfos = 8

// GetAddrInfo finds the addresses of a node and service (rdma_getaddrinfo(3)); node or service may be "", and
// hints nil, but not all.  It may ask name servers and ibacm; the error wraps ctx.Err() when ctx ends first,
// and their answer is dropped when it comes.
func (p *Provider) GetAddrInfo(ctx context.Context, node, service string, hints *AddrInfo) ([]AddrInfo, error) {
	const op = "rdma_getaddrinfo"
	if p == nil || p.c == nil {
		return nil, closed(op, "provider")
	}
	return p.resolver.getAddrInfo(ctx, op, node, service, hints)
}

// Resolver finds addresses with a bounded number of threads, one for each question: the C library waits for name
// servers, and nothing ends that.
type Resolver struct {
	provider *Provider
	free     chan struct{} // a token for each question that may be asked now
}

// Limits of the lookups in progress: of a provider in all, and of one Resolver.
const (
	maxLookups   = 64
	lookupsOfOne = 2
)

func newResolver(p *Provider, most int) *Resolver {
	r := &Resolver{p, make(chan struct{}, most)}
	for range most {
		r.free <- struct{}{}
	}
	return r
}

// NewResolver makes a resolver that has at most two lookups in progress.  A caller that starts lookups without waiting
// for results then blocks only its own.
func (p *Provider) NewResolver() *Resolver { return newResolver(p, lookupsOfOne) }

// GetAddrInfo is Provider.GetAddrInfo, which waits while too many questions are under way.
func (r *Resolver) GetAddrInfo(ctx context.Context, node, service string, hints *AddrInfo) ([]AddrInfo, error) {
	const op = "rdma_getaddrinfo"
	if r.provider == nil || r.provider.c == nil {
		return nil, closed(op, "provider")
	}
	return r.getAddrInfo(ctx, op, node, service, hints)
}

func (r *Resolver) getAddrInfo(ctx context.Context, op, node, service string, hints *AddrInfo) ([]AddrInfo, error) {
	type answer struct {
		found []AddrInfo
		err   error
	}
	p := r.provider
	resolvers := []*Resolver{r, p.resolver}
	if r == p.resolver {
		resolvers = resolvers[:1]
	}
	for at, each := range resolvers {
		select {
		case <-each.free:
		case <-ctx.Done():
			if at > 0 {
				r.free <- struct{}{}
			}
			return nil, cancelled(ctx, op, "a free resolver for "+node)
		}
	}
	came := make(chan answer, 1)
	native := p.c
	C.core_hold(native) // Close does not wait for name servers
	go func() {
		defer C.core_release(native)
		found, err := getAddrInfo(native, op, node, service, hints)
		for _, each := range resolvers {
			each.free <- struct{}{}
		}
		came <- answer{found, err}
	}()
	select {
	case a := <-came:
		return a.found, a.err
	case <-ctx.Done():
		return nil, cancelled(ctx, op, "the address of "+node)
	}
}

func getAddrInfo(native *C.struct_core_provider, op, node, service string, hints *AddrInfo) ([]AddrInfo, error) {
	cnode, cservice := optionalString(node), optionalString(service)
	defer C.free(unsafe.Pointer(cnode))
	defer C.free(unsafe.Pointer(cservice))
	results := make([]C.struct_core_addrinfo, maxAddrInfos)
	var eai C.int
	count := int(C.core_getaddrinfo(native, cnode, cservice, hints.toC(), &results[0], maxAddrInfos, &eai))
	if eai != 0 {
		return nil, fail(op, syscall.EINVAL, "%s: %s", node+":"+service, C.GoString(C.gai_strerror(eai)))
	}
	if err := check(op, count); err != nil {
		return nil, err
	}
	return fromCAddrInfos(results[:count]), nil
}

// ResolveAddrInfo is GetAddrInfo that ends with ADDRINFO_RESOLVED or ADDRINFO_ERROR on the id
// (rdma_resolve_addrinfo(3), since rdma-core 60); QueryAddrInfo has the result.  Name servers are asked within
// the call.
func (id *ID) ResolveAddrInfo(node, service string, hints *AddrInfo) error {
	const op = "rdma_resolve_addrinfo"
	if !id.open() {
		return closed(op, "id")
	}
	cnode, cservice := optionalString(node), optionalString(service)
	defer C.free(unsafe.Pointer(cnode))
	defer C.free(unsafe.Pointer(cservice))
	native := hints.toC()
	return id.start(op, node, func() C.int {
		return C.core_resolve_addrinfo(id.native(), id.c, cnode, cservice, native)
	})
}

// QueryAddrInfo is what ResolveAddrInfo found (rdma_query_addrinfo(3)).  ENOENT when nothing was.
func (id *ID) QueryAddrInfo() ([]AddrInfo, error) {
	const op = "rdma_query_addrinfo"
	if !id.open() {
		return nil, closed(op, "id")
	}
	results := make([]C.struct_core_addrinfo, maxAddrInfos)
	found := id.channel.provider.ask(func() C.int {
		return C.core_query_addrinfo(id.native(), id.c, &results[0], maxAddrInfos)
	})
	if err := id.explain(op, found, ""); err != nil {
		return nil, err
	}
	return fromCAddrInfos(results[:found.result]), nil
}

func optionalString(text string) *C.char {
	if text == "" {
		return nil
	}
	return C.CString(text)
}

func (info *AddrInfo) toC() *C.struct_core_addrinfo {
	if info == nil {
		return nil
	}
	return &C.struct_core_addrinfo{
		flags: C.int32_t(info.Flags), family: C.int32_t(info.Family), qp_type: C.int32_t(info.QPType),
		port_space: C.int32_t(info.PortSpace), source: toCAddress(info.Source),
		destination: toCAddress(info.Destination),
	}
}

func fromCAddrInfos(from []C.struct_core_addrinfo) []AddrInfo {
	infos := make([]AddrInfo, len(from))
	for at := range from {
		c := &from[at]
		infos[at] = AddrInfo{
			Flags: AddrInfoFlags(c.flags), Family: int(c.family), QPType: QPType(c.qp_type),
			PortSpace: PortSpace(c.port_space), Source: fromCAddress(&c.source),
			Destination: fromCAddress(&c.destination), SourceName: C.GoString(&c.source_name[0]),
			DestinationName: C.GoString(&c.destination_name[0]),
			Route:           C.GoBytes(unsafe.Pointer(&c.route[0]), C.int(c.route_len)),
			Connect:         C.GoBytes(unsafe.Pointer(&c.connect[0]), C.int(c.connect_len)),
		}
	}
	return infos
}
