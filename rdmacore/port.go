package rdmacore

// #include "core/core.h"
import "C"

import (
	"encoding/binary"
	"net"
	"net/netip"
	"syscall"
)

// Port is one port of a device (ibv_query_port(3)).
type Port struct {
	Number    int
	State     PortState
	LinkLayer LinkLayer
	ActiveMTU int // bytes
	MaxMTU    int // bytes
	LID       int
	MaxMsg    uint32  // bytes
	RateGbps  float64 // Gbit/s, nominal, width times speed
	Netdev    string  // name of the network interface, "" when unknown
	GIDs      []GID
}

// GID is one address of a port (ibv_query_gid_table(3)).
type GID struct {
	Index   int
	Raw     netip.Addr // all 16 bytes
	Type    string     // "RoCE v2", "RoCE v1", "IB", "iWARP"
	Address netip.Addr // the IP address it stands for, unmapped; invalid when it stands for none
}

// maxGIDs is room for the tables of all ports of one device; mlx5 has 256 entries a port, rxe 1024.
const maxGIDs = 4096

// Ports lists the ports of the device with their GIDs.
func (d *Device) Ports() ([]Port, error) {
	attr, err := d.Attr()
	if err != nil {
		return nil, err
	}
	gids := make([]C.struct_core_gid, maxGIDs)
	count := int(C.core_query_gids(d.provider.c, d.c, &gids[0], C.int(len(gids))))
	if err := check("ibv_query_gid_table", count); err != nil {
		return nil, err
	}
	ports := make([]Port, 0, attr.PhysicalPorts)
	for number := 1; number <= attr.PhysicalPorts; number++ {
		port, err := d.port(number, gids[:count])
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}

func (d *Device) port(number int, gids []C.struct_core_gid) (Port, error) {
	var c C.struct_ibv_port_attr
	if err := check("ibv_query_port",
		int(C.core_query_port(d.provider.c, d.c, C.uint8_t(number), &c))); err != nil {
		return Port{}, err
	}
	port := Port{
		Number:    number,
		State:     PortState(c.state),
		LinkLayer: LinkLayer(c.link_layer),
		ActiveMTU: mtuBytes(uint32(c.active_mtu)),
		MaxMTU:    mtuBytes(uint32(c.max_mtu)),
		LID:       int(c.lid),
		MaxMsg:    uint32(c.max_msg_sz),
		RateGbps:  linkRate(uint32(c.active_speed), uint32(c.active_width)),
	}
	ethernet := c.link_layer == C.IBV_LINK_LAYER_ETHERNET
	for i := range gids {
		if int(gids[i].port) != number {
			continue
		}
		gid := toGID(&gids[i], ethernet)
		if d.IWARP() {
			gid.Type = "iWARP" // the kernel's name is that of InfiniBand's
		}
		port.GIDs = append(port.GIDs, gid)
		if port.Netdev == "" && d.provider.Link() == "" { // soft's device is on no interface
			port.Netdev = netdevOf(int(gids[i].netdev_index), gid.Raw)
		}
	}
	return port, nil
}

func toGID(c *C.struct_core_gid, ethernet bool) GID {
	var raw [16]byte
	for i := range raw {
		raw[i] = byte(c.raw[i])
	}
	gid := GID{Index: int(c.index), Raw: netip.AddrFrom16(raw), Type: gidTypeNames.name(uint32(c._type))}
	// On Ethernet a GID is an IP address (RoCE v2 annex A17.3). An InfiniBand one is prefix and GUID, and an iWARP
	// one a MAC address.
	if gid.Raw.Is4In6() || ethernet && uint32(c._type) != C.IBV_GID_TYPE_IB {
		gid.Address = gid.Raw.Unmap()
	}
	return gid
}

// netdevOf names the interface by its index, or else by its hardware address. That of an IPoIB interface ends with the
// port's GID, and iWARP's GID begins with it.
func netdevOf(index int, gid netip.Addr) string {
	if index != 0 {
		if link, err := net.InterfaceByIndex(index); err == nil {
			return link.Name
		}
	}
	links, err := net.Interfaces()
	if err != nil {
		return ""
	}
	raw := gid.As16()
	for _, link := range links {
		switch hardware := link.HardwareAddr; {
		case len(hardware) == 20 && [16]byte(hardware[4:]) == raw:
			return link.Name
		case len(hardware) == 6 && [6]byte(hardware) == [6]byte(raw[:6]) && [10]byte(raw[6:]) == [10]byte{}:
			return link.Name
		}
	}
	return ""
}

// activePort is the number of the first active port, 0 when there is none.
func (d *Device) activePort() (int, error) {
	attr, err := d.Attr()
	if err != nil {
		return 0, err
	}
	for number := 1; number <= attr.PhysicalPorts; number++ {
		var c C.struct_ibv_port_attr
		result := C.core_query_port(d.provider.c, d.c, C.uint8_t(number), &c)
		if result == 0 && c.state == C.IBV_PORT_ACTIVE {
			return number, nil
		}
	}
	return 0, nil
}

// Address is an IP address by which rdma_cm reaches this device. It is the first IPv4 address of an active port, else
// the first IPv6 address that is not link-local. When it has none, the error is EADDRNOTAVAIL with a remedy.
func (d *Device) Address() (netip.Addr, error) {
	const op = "device address"
	ports, err := d.Ports()
	if err != nil {
		return netip.Addr{}, err
	}
	var six netip.Addr
	for _, port := range ports {
		if port.State != PortActive {
			continue
		}
		for _, address := range port.Addresses() {
			if address.Is4() {
				return address, nil
			}
			if !six.IsValid() && !address.IsLinkLocalUnicast() {
				six = address
			}
		}
	}
	if !six.IsValid() {
		return six, fail(op, syscall.EADDRNOTAVAIL, "no active port of %s has an IP address; "+
			"give its network interface one (ip address add 192.0.2.1/24 dev eth0)", d.Name())
	}
	return six, nil
}

// Addresses are the IP addresses by which rdma_cm reaches the port. They are those of the GIDs, or of the interface
// when GIDs have none (InfiniBand, iWARP).
func (p *Port) Addresses() []netip.Addr {
	var found []netip.Addr
	for _, gid := range p.GIDs {
		if gid.Address.IsValid() {
			found = append(found, gid.Address)
		}
	}
	if found != nil || p.Netdev == "" {
		return found
	}
	link, err := net.InterfaceByName(p.Netdev)
	if err != nil {
		return nil
	}
	addresses, err := link.Addrs()
	if err != nil {
		return nil
	}
	for _, address := range addresses {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil {
			found = append(found, prefix.Addr().Unmap())
		}
	}
	return found
}

// mtuBytes turns enum ibv_mtu into bytes; 0 when it is none.
func mtuBytes(mtu uint32) int {
	if mtu < C.IBV_MTU_256 || mtu > C.IBV_MTU_4096 {
		return 0
	}
	return 128 << mtu
}

// mtuEnum is the reverse; 0 when there is no such MTU.
func mtuEnum(bytes int) uint32 {
	for mtu := uint32(C.IBV_MTU_256); mtu <= C.IBV_MTU_4096; mtu++ {
		if mtuBytes(mtu) == bytes {
			return mtu
		}
	}
	return 0
}

// linkRate is the nominal rate in Gbit/s of active_speed and active_width (IBTA volume 1, PortInfo).
func linkRate(speed, width uint32) float64 {
	lane := map[uint32]float64{1: 2.5, 2: 5, 4: 10, 8: 10, 16: 14, 32: 25, 64: 50, 128: 100}[speed]
	lanes := map[uint32]float64{1: 1, 2: 4, 4: 8, 8: 12, 16: 2}[width]
	return lane * lanes
}

// fromNetworkOrder turns a __be64 as it lies in memory into a number.
func fromNetworkOrder(raw uint64) uint64 {
	var bytes [8]byte
	binary.NativeEndian.PutUint64(bytes[:], raw)
	return binary.BigEndian.Uint64(bytes[:])
}
