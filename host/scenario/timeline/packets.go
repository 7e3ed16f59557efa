package timeline

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// Packets maps each packet to its step, where the provider writes packets to a file.  Without, it is nil,
// and its methods do nothing.  The lock of the testbed guards it.
type Packets struct {
	providers []*rdmacore.Provider
	began     []time.Duration // of the case, on the clock of each
	roles     map[netip.Addr][]string
	number    uint32 // of the step that began last
	// running has the steps that have not ended, with their packets.
	running map[uint32]*sentPackets
	// between has packets that were sent after the end of their step.
	between sentPackets
}

// sentPackets has the first packets of a step, and the number of the others.
type sentPackets struct {
	first []record.Packet
	more  int
}

func (s *sentPackets) add(p record.Packet) {
	if len(s.first) < record.MaxPackets {
		s.first = append(s.first, p)
	} else {
		s.more++
	}
}

// NewPackets starts to take packets; nil if no provider captures them.
func NewPackets(bed *testbed.Testbed) *Packets {
	p := &Packets{roles: make(map[netip.Addr][]string), running: make(map[uint32]*sentPackets)}
	for _, role := range bed.Roles() {
		if provider := role.Provider(); provider.Captures() && !slices.Contains(p.providers, provider) {
			p.providers, p.began = append(p.providers, provider), append(p.began, provider.Clock().Now())
		}
		p.roles[role.Address()] = append(p.roles[role.Address()], role.Name)
	}
	if p.providers == nil {
		return nil
	}
	return p
}

// Begin reports the current step to the capture, and returns its number.
func (p *Packets) Begin(step *compile.Step, role *testbed.Role, operation string) uint32 {
	if p == nil {
		return 0
	}
	p.number++
	place, who := fmt.Sprintf("%s:%d", step.Span.File(), step.Span.Line), ""
	if role != nil {
		who = role.Name + ": "
	}
	for _, provider := range p.providers {
		var address netip.Addr
		if role != nil && provider == role.Provider() {
			address = role.Address()
		}
		provider.CaptureStep(address, p.number, place+" "+who+operation)
	}
	p.running[p.number] = &sentPackets{}
	return p.number
}

// End ends the step: later packets of its role belong to another one.
func (p *Packets) End(role *testbed.Role) {
	if p == nil {
		return
	}
	if role != nil {
		role.Provider().CaptureStep(role.Address(), 0, "")
	}
	for i := range p.providers {
		p.collect(i)
	}
}

// collect takes the packets that a provider has sent since the last call.
func (p *Packets) collect(number int) {
	sent, missed := p.providers[number].Captured()
	for i := range sent {
		each := &sent[i]
		if each.Inbound && each.FaultResult == "" && p.roles[each.From] != nil {
			continue // its sender has captured it, too
		}
		of := p.running[each.Step]
		if of == nil {
			of = &p.between
		}
		from, to := p.ends(each)
		of.add(record.Packet{
			At: each.Time - p.began[number], From: from, To: to, Name: each.Name(),
			QueuePair: each.QueuePair, PSN: each.PSN, Length: int(each.Length), FaultResult: each.FaultResult,
		})
	}
	p.between.more += int(missed)
}

// ends are the roles that a packet goes from and to, or their addresses.  Programs of one host share an address, so the
// interface that has captured the packet shows which program it is.  The other end is another one.
func (p *Packets) ends(packet *rdmacore.CapturedPacket) (from, to string) {
	here, _, _ := strings.Cut(packet.Interface, ",")
	from, to = p.name(packet.From, here), p.name(packet.To, here)
	switch {
	case here == "":
	case packet.Inbound:
		to = here
	default:
		from = here
	}
	return from, to
}

// name is the roles with the address but for one, or the address.
func (p *Packets) name(address netip.Addr, but string) string {
	roles := p.roles[address]
	if len(roles) > 1 {
		roles = slices.DeleteFunc(slices.Clone(roles), func(role string) bool { return role == but })
	}
	if len(roles) == 0 {
		return address.String()
	}
	return strings.Join(roles, ", ")
}

// Take returns the packets of a step that has ended, after those sent since the step before.
func (p *Packets) Take(number uint32) ([]record.Packet, int) {
	if p == nil {
		return nil, 0
	}
	all := p.between
	p.between = sentPackets{}
	if of := p.running[number]; of != nil {
		for _, each := range of.first {
			all.add(each)
		}
		all.more += of.more
		delete(p.running, number)
	}
	return all.first, all.more
}
