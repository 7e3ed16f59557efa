package verb

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// deviceVerbs query the role's device, its ports and their tables.
var deviceVerbs = []Verb{
	ask("query_device", "ibv_query_device_ex(3)",
		"Ask the role's device for its limits.  Those of ibv_query_device_ex alone are 0 on a device that has "+
			"only ibv_query_device.", queryDevice),
	ask("query_rt_values", "ibv_query_rt_values_ex(3)", "Read the clock of the role's device, from which "+
		"completion_ts comes.",
		func(_ context.Context, call *Call, _ *none) (result struct {
			RawClock uint64 `result:"raw_clock,varies" doc:"ticks; hca_core_clock thousand of them are a second"`
		}, err error) {
			result.RawClock, err = call.Role.Device().RawClock()
			return result, err
		}).needing(CanStamp),
	ask("query_port", "ibv_query_port(3)", "Ask the role's device for a port.",
		func(_ context.Context, _ *Call, args *thePort) (portState, error) {
			port := &args.port
			return portState{
				port.State.String(), port.LinkLayer.String(), port.ActiveMTU, port.MaxMTU, byteCount(port.MaxMsg),
				port.LID, len(port.GIDs),
			}, nil
		}),
	ask("query_gid", "ibv_query_gid(3)", "Ask the role's device for an entry of the GID table of a port.", queryGID),
	ask("query_pkey", "ibv_query_pkey(3)", "Ask the role's device for a partition key of a port.",
		func(_ context.Context, call *Call, args *struct {
			portNumber
			Index int `arg:"index" default:"0" max:"0x7fffffff" doc:"in the port's table"`
		}) (result struct {
			PKey uint16 `result:"pkey" doc:"the key; its highest bit is set for a full member"`
		}, err error) {
			result.PKey, err = call.Role.Device().PKey(int(args.Port), args.Index)
			return result, err
		}),
	ask("get_pkey_index", "ibv_get_pkey_index(3)", "Ask the role's device where in a port's table a partition key is.",
		func(_ context.Context, call *Call, args *struct {
			portNumber
			PKey uint16 `arg:"pkey,required" doc:"the key"`
		}) (result struct {
			Index int `result:"index" doc:"in the port's table"`
		}, err error) {
			result.Index, err = call.Role.Device().PKeyIndex(int(args.Port), args.PKey)
			return result, err
		}),
}

// deviceLimits is struct ibv_device_attr_ex; assign fills in the fields that rdmacore.DeviceAttr has by the same names.
type deviceLimits struct {
	Name                    string    `result:"name,varies" doc:"of the device"`
	FirmwareVersion         string    `result:"fw_ver,varies" doc:"firmware"`
	Index                   int       `result:"index,varies" doc:"the kernel's number of it; -1 for none"`
	MaxMRSize               byteCount `result:"max_mr_size,varies" doc:"bytes of a memory region"`
	Atomic                  bool      `result:"atomic,varies" doc:"whether it has atomics"`
	CapFlagsEx              uint64    `result:"device_cap_flags_ex,hex,varies" doc:"device_cap_flags, and those beyond 32 bits"`
	CompletionTimestampMask uint64    `result:"completion_timestamp_mask,hex,varies" doc:"bits that count of completion_ts; 0: it has no time stamps"`
	MaxQP                   int       `result:"max_qp,varies" doc:"queue pairs"`
	MaxQPWR                 int       `result:"max_qp_wr,varies" doc:"work requests in a queue"`
	MaxSGE                  int       `result:"max_sge,varies" doc:"buffers of a request"`
	MaxSGERead              int       `result:"max_sge_rd,varies" doc:"buffers of a READ"`
	MaxCQ                   int       `result:"max_cq,varies" doc:"completion queues"`
	MaxCQE                  int       `result:"max_cqe,varies" doc:"entries of a completion queue"`
	MaxMR                   int       `result:"max_mr,varies" doc:"memory regions"`
	MaxMW                   int       `result:"max_mw,varies" doc:"memory windows"`
	MaxPD                   int       `result:"max_pd,varies" doc:"protection domains"`
	MaxQPRdAtom             int       `result:"max_qp_rd_atom,varies" doc:"READs and atomics served at once"`
	MaxQPInitRdAtom         int       `result:"max_qp_init_rd_atom,varies" doc:"READs and atomics outstanding at once"`
	MaxSRQ                  int       `result:"max_srq,varies" doc:"shared receive queues"`
	MaxSRQWR                int       `result:"max_srq_wr,varies" doc:"receives in one"`
	MaxSRQSGE               int       `result:"max_srq_sge,varies" doc:"buffers of such a receive"`
	MaxAH                   int       `result:"max_ah,varies" doc:"address handles"`
	MaxMulticast            int       `result:"max_mcast_grp,varies" doc:"multicast groups"`
	MaxPkeys                int       `result:"max_pkeys,varies" doc:"partition keys of a port"`
	LocalCAAckDelay         int       `result:"local_ca_ack_delay,varies" doc:"code n of the longest delay of its acknowledgements, 4.096 us * 2^n"`
	VendorID                int       `result:"vendor_id,varies" doc:"vendor"`
	VendorPartID            int       `result:"vendor_part_id,varies" doc:"the vendor's number of the part"`
	PhysicalPorts           int       `result:"phys_port_cnt,varies" doc:"ports, as far as a byte counts"`
	PhysicalPortsEx         int       `result:"phys_port_cnt_ex,varies" doc:"ports"`
	CapFlags                int       `result:"device_cap_flags,varies" doc:"enum ibv_device_cap_flags"`
	CoreClock               int       `result:"hca_core_clock,varies" doc:"kHz of the clock of completion_ts and query_rt_values"`
	ODPCaps                 int       `result:"odp_general_caps,varies" doc:"on-demand paging, enum ibv_odp_general_caps"`
	ODPCapsRC               int       `result:"rc_odp_caps,varies" doc:"operations of RC that can use it, enum ibv_odp_transport_cap_bits"`
	ODPCapsUC               int       `result:"uc_odp_caps,varies" doc:"of UC"`
	ODPCapsUD               int       `result:"ud_odp_caps,varies" doc:"of UD"`
	PCIAtomicFetchAdd       int       `result:"pci_atomic_fetch_add,varies" doc:"enum ibv_pci_atomic_op_size"`
	PCIAtomicSwap           int       `result:"pci_atomic_swap,varies" doc:"likewise"`
	PCIAtomicCompareSwap    int       `result:"pci_atomic_compare_swap,varies" doc:"likewise"`
	MaxModerationCount      int       `result:"max_cq_count,varies" doc:"completions that modify_cq makes one event of"`
	MaxModerationPeriod     int       `result:"max_cq_period,varies" doc:"microseconds that it waits"`
	MaxDMSize               int       `result:"max_dm_size,varies" doc:"bytes of its own memory"`
	MaxTSO                  int       `result:"max_tso,varies" doc:"bytes of a message that it segments"`
}

func (d deviceLimits) summary() string { return d.Name }

func queryDevice(_ context.Context, call *Call, _ *none) (deviceLimits, error) {
	device := call.Role.Device()
	attr, err := device.Attr()
	limits := deviceLimits{Name: device.Name(), Index: device.Index()}
	assign(&limits, &attr)
	return limits, err
}

// portNumber is the argument of verbs that work on a port; thePort looks the port up.
type (
	portNumber struct {
		Port uint8 `arg:"port" default:"1" doc:"number of the port"`
	}
	thePort struct {
		portNumber
		port rdmacore.Port
	}
)

// find looks the port up.  If there is none the errno is EINVAL, as from ibv_query_port.
func (p *thePort) find(call *Call) error {
	ports, err := call.Role.Device().Ports()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(ports, func(port rdmacore.Port) bool { return port.Number == int(p.Port) })
	if at < 0 {
		return &testbed.Failure{
			What: fmt.Sprintf("device %s has no port %d", call.Role.Device().Name(), p.Port), Errno: syscall.EINVAL,
		}
	}
	p.port = ports[at]
	return nil
}

// portState is the part of struct ibv_port_attr that scenarios see.
type portState struct {
	State     string    `result:"state" doc:"active, down, init or armed"`
	LinkLayer string    `result:"link_layer" doc:"Ethernet or InfiniBand"`
	ActiveMTU int       `result:"active_mtu,varies" doc:"bytes"`
	MaxMTU    int       `result:"max_mtu,varies" doc:"bytes"`
	MaxMsg    byteCount `result:"max_msg_sz,varies" doc:"bytes of a message"`
	LID       int       `result:"lid,varies" doc:"local identifier, of InfiniBand"`
	GIDs      int       `result:"gids,varies" doc:"entries of the GID table in use"`
}

func (p portState) summary() string { return p.State }

func queryGID(_ context.Context, _ *Call, args *struct {
	thePort
	Index uint16 `arg:"index" default:"0" doc:"of the entry"`
}) (result struct {
	GID     string `result:"gid,varies" doc:"all 16 bytes, as an IPv6 address"`
	Type    string `result:"type" doc:"RoCE v2, RoCE v1 or IB"`
	Address string `result:"address,varies" doc:"the IP address that it stands for; \"\" for none"`
}, err error) {
	var known []string
	for _, gid := range args.port.GIDs {
		known = append(known, fmt.Sprint(gid.Index))
		if gid.Index != int(args.Index) {
			continue
		}
		if gid.Address.IsValid() {
			result.Address = gid.Address.String()
		}
		result.GID, result.Type = gid.Raw.String(), gid.Type
		return result, nil
	}
	return result, &testbed.Failure{
		What: fmt.Sprintf("port %d has no GID %d", args.Port, args.Index), Hint: "in use: " + strings.Join(known, ", "),
		Errno: syscall.ENODATA,
	}
}
