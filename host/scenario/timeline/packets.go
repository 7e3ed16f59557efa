package timeline

import (
	"fmt"
	"net/netip"
	"slices"
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
	roles     map[netip.Addr]string
	number    uint32 // of the step that began last
	// running are the steps that have not ended, with what was sent in them until now.
	running map[uint32]*sentPackets
	// between is what was sent when the step it belongs to had ended.
	between sentPackets
}

// sentPackets are the first of some packets, and how many more there were.
type sentPackets struct {
	first []record.Packet
	more  int
}

func (s *sentPackets) add(p record.Packet) {
	if len(s.first) < record.MostPackets {
		s.first = append(s.first, p)
	} else {
		s.more++
	}
}

// NewPackets begins to listen; nil when there is nothing to hear.
func NewPackets(bed *testbed.Testbed) *Packets {
	p := &Packets{roles: make(map[netip.Addr]string), running: make(map[uint32]*sentPackets)}
	for _, role := range bed.Roles() {
		if provider := role.Provider(); provider.Captures() && !slices.Contains(p.providers, provider) {
			p.providers, p.began = append(p.providers, provider), append(p.began, provider.Clock().Now())
		}
		if other := p.roles[role.Address()]; other != "" {
			p.roles[role.Address()] = other + ", " + role.Name
		} else {
			p.roles[role.Address()] = role.Name
		}
	}
	if p.providers == nil {
		return nil
	}
	return p
}

// Begin tells the capture where the run is, and numbers the step.
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

// End is the end of the step: what its role sends from now on is another's.
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

// collect fetches what a provider has sent since the last time.
func (p *Packets) collect(number int) {
	sent, missed := p.providers[number].Captured()
	for i := range sent {
		each := &sent[i]
		of := p.running[each.Step]
		if of == nil {
			of = &p.between
		}
		of.add(record.Packet{
			At: each.Time - p.began[number], From: p.name(each.From), To: p.name(each.To), Name: each.Name(),
			QueuePair: each.QueuePair,
			PSN:       each.PSN, Length: int(each.Length), Fate: each.Fate,
		})
	}
	p.between.more += int(missed)
}

// name is the role that has the address, or the address.
func (p *Packets) name(address netip.Addr) string {
	if role := p.roles[address]; role != "" {
		return role
	}
	return address.String()
}

// Take returns the packets of a step that has ended, behind those that were sent since an earlier one.
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
