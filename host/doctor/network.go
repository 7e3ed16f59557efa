package doctor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

func ports(_ context.Context, m Machine) (Status, string, string) {
	all := portsOf(m)
	if len(all) == 0 {
		return Skip, "there is no device", ""
	}
	var up, down []string
	fix := ""
	for _, p := range all {
		if p.active(m) {
			up = append(up, p.String())
			continue
		}
		down = append(down, p.String()+" "+strings.TrimLeft(read(m, p.folder+"/state"), "0123456789: "))
		if netdev := p.netdev(m); netdev != "" {
			fix = "ip link set " + netdev + " up"
		}
	}
	switch {
	case len(up) == 0:
		return Fail, "no port is active: " + strings.Join(down, ", "), fix
	case len(down) > 0:
		return Warn, "active: " + strings.Join(up, ", ") + "; not: " + strings.Join(down, ", "), fix
	}
	return OK, "active: " + strings.Join(up, ", "), ""
}

const noGID = "0000:0000:0000:0000:0000:0000:0000:0000"

// gidTables looks for an address by which rdma_cm can reach the port with RoCE v2.
func gidTables(_ context.Context, m Machine) (Status, string, string) {
	var good, bad, late []string
	for _, p := range portsOf(m) {
		if !p.active(m) || read(m, p.folder+"/link_layer") != "Ethernet" {
			continue
		}
		if p.iwarp(m) {
			good = append(good, p.String()+" is iWARP, which is reached without GIDs")
			continue
		}
		var v2 []int
		for _, name := range names(m, p.folder+"/gids") {
			index, err := strconv.Atoi(name)
			gid := read(m, p.folder+"/gids/"+name)
			if err == nil && gid != "" && gid != noGID &&
				strings.Contains(read(m, p.folder+"/gid_attrs/types/"+name), "v2") {
				v2 = append(v2, index)
			}
		}
		slices.Sort(v2)
		if len(v2) == 0 {
			bad = append(bad, p.String())
			continue
		}
		if first := read(m, p.folder+"/gid_attrs/types/0"); !slices.Contains(v2, 0) && first != "" {
			late = append(late, fmt.Sprintf("%s has RoCE v2 at index %d, and %s at index 0", p, v2[0], first))
			continue
		}
		good = append(good, fmt.Sprintf("%s has RoCE v2 at index %s", p, strings.Trim(fmt.Sprint(v2), "[]")))
	}
	switch {
	case bad != nil:
		return Fail, "no RoCE v2 address: " + strings.Join(bad, ", "),
			"give the network interface an IP address: ip address add 192.0.2.1/24 dev NETDEV"
	case late != nil:
		return Warn, strings.Join(append(late, good...), "; ") + "; tools that default to index 0 will time out at RTR",
			"name the index to them (ib_write_bw -x INDEX, rdmarun run --gid INDEX); rdma_cm finds it by itself"
	case good == nil:
		return Skip, "no active port over Ethernet", ""
	}
	return OK, strings.Join(good, "; "), ""
}

// rocePort is RoCE v2's UDP port (IBTA annex A17.9.2).
const rocePort = 4791

// roceSockets finds what receives RoCE v2 here. The kernel's own driver and adapters leave soft no port for other
// hosts. A program leaves it the port of each address that it did not bind.
func roceSockets(_ context.Context, m Machine) (Status, string, string) {
	var taken []string
	for _, table := range []string{"proc/net/udp", "proc/net/udp6"} {
		for line := range strings.Lines(read(m, table)) {
			// sl local_address rem_address st tx_queue:rx_queue tr:when retrnsmt uid timeout inode ...
			fields := strings.Fields(line)
			if len(fields) < 10 {
				continue
			}
			address, port, _ := strings.Cut(fields[1], ":")
			if number, err := strconv.ParseUint(port, 16, 16); err != nil || number != rocePort {
				continue
			}
			taken = append(taken, fmt.Sprintf("%s of user %s", kernelAddress(address), fields[7]))
		}
	}
	switch {
	case taken == nil && !exists(m, "proc/net/udp"):
		return Skip, "/proc/net/udp is not there to be read", ""
	case taken == nil:
		return OK, fmt.Sprintf("UDP port %d is free: soft's link udp reaches RoCE v2 hosts, and they it", rocePort), ""
	case exists(m, "sys/module/rdma_rxe"):
		return Warn, fmt.Sprintf(
				"rdma_rxe has UDP port %d: soft's link udp reaches only other programs on soft", rocePort,
			),
			"for other hosts use the device (--provider verbs), or a network namespace of its own, where the port " +
				"is free: unshare -n"
	}
	return Warn, fmt.Sprintf(
			"UDP port %d is taken on %s: other hosts reach who has it", rocePort, strings.Join(taken, ", "),
		),
		fmt.Sprintf(
			"unless that is rdmarun (its processes of one user share it): ss -ulpn 'sport = :%d' names the program",
			rocePort,
		)
}

// sharing finds whether a process that is stopped hurts others of its user (rdmacore/soft/udp/watch.c).
func sharing(_ context.Context, m Machine) (Status, string, string) {
	if err := m.Choose(); err != nil {
		return Warn, fmt.Sprintf("the kernel accepts no program that selects a socket of a port (%v).  On soft's "+
				"link udp, a stopped process keeps its part of the packets of all processes of its user.  "+
				"Connections of the others fail, and a flood of requests takes the buffers of data", err),
			"continue or end stopped processes (kill -CONT PID); the program needs Linux 4.5, and a container that " +
				"allows setsockopt SO_ATTACH_REUSEPORT_CBPF"
	}
	return OK, "the kernel gives packets of soft's link udp to processes that take them, and none to one that is " +
		"stopped", ""
}

// kernelAddress reads an address as /proc/net/udp and udp6 write it: 32-bit words in hexadecimal, each in the byte
// order of the machine.
func kernelAddress(text string) string {
	var raw []byte
	for ; len(text) >= 8; text = text[8:] {
		word, err := strconv.ParseUint(text[:8], 16, 32)
		if err != nil {
			return text
		}
		raw = binary.NativeEndian.AppendUint32(raw, uint32(word))
	}
	address, _ := netip.AddrFromSlice(raw)
	return address.String()
}

// fullMTU is what an interface needs for RoCE's largest payload, 4096 bytes, and its headers.
const fullMTU = 4200

func mtus(_ context.Context, m Machine) (Status, string, string) {
	var small, all []string
	fix := ""
	for _, p := range portsOf(m) {
		netdev := p.netdev(m)
		mtu, err := strconv.Atoi(read(m, "sys/class/net/"+netdev+"/mtu"))
		if netdev == "" || err != nil || !p.active(m) || p.iwarp(m) {
			continue
		}
		all = append(all, fmt.Sprintf("%s %d", netdev, mtu))
		if mtu < fullMTU {
			small = append(small, fmt.Sprintf("%s %d, so packets carry %d bytes at most", netdev, mtu, payload(mtu)))
			fix = "for packets of 4096 bytes, at both ends and the switch: ip link set " + netdev + " mtu 9000"
		}
	}
	switch {
	case all == nil:
		return Skip, "no active port over Ethernet", ""
	case small != nil:
		return Warn, strings.Join(small, "; "), fix
	}
	return OK, strings.Join(all, ", "), ""
}

// roceHeaders are IPv6, UDP, BTH, RETH, AtomicETH and ICRC at their longest, in bytes, as the kernel reckons
// (eth_mtu_int_to_enum and rxe_mtu).
const roceHeaders = 40 + 8 + 12 + 16 + 28 + 4

// payload is the path MTU that an interface's MTU leaves.
func payload(mtu int) int {
	for _, size := range []int{4096, 2048, 1024, 512} {
		if mtu-roceHeaders >= size {
			return size
		}
	}
	return 256
}

// Route is how rdma_cm reaches a host, as far as this end can see.
type Route struct {
	Peer   netip.Addr
	Source netip.Addr
	Device string
	Port   int
	GID    int // index; -1 when the source is in no GID table
	Type   string
	MTU    int // bytes a packet carries at this port
}

// ErrNoDevice means that a check does not apply, because there is no device to try it on.
var ErrNoDevice = errors.New("no active device has an address")

// loopback connects to this machine over rdma_cm, through the device.
func loopback(ctx context.Context, m Machine) (Status, string, string) {
	detail, err := m.Loopback(ctx)
	switch {
	case errors.Is(err, ErrNoDevice):
		return Skip, err.Error(), ""
	case err != nil:
		return Fail, err.Error(), "the lines above say what is missing; rdmarun explain has the meaning of a status"
	}
	return OK, detail, ""
}

// peer looks for the route to another host.  The settings of the other end cannot be seen from here.
func peer(ctx context.Context, m Machine) (Status, string, string) {
	if m.Peer == "" {
		return Skip, "no --peer HOST was given", ""
	}
	route, err := m.Resolve(ctx, m.Peer)
	if err != nil {
		status := Fail
		if errors.Is(err, ErrNoDevice) {
			status = Skip
		}
		return status, m.Peer + ": " + err.Error(), fmt.Sprintf(
			"ip route get %s must name the interface of an RDMA device, and ping %s must answer", m.Peer, m.Peer,
		)
	}
	detail := fmt.Sprintf("%s (%s) from %s, %s port %d", m.Peer, route.Peer, route.Source, route.Device, route.Port)
	if route.GID < 0 {
		return Warn, detail + "; its GID table lacks that address", "rdmarun devices lists the table"
	}
	detail += fmt.Sprintf(", GID index %d %s, packets of up to %d bytes", route.GID, route.Type, route.MTU)
	return OK, detail + "; the route is there, whether the peer listens and has the same GID type, MTU and PFC only " +
		"a connection shows", ""
}
