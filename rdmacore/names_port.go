package rdmacore

// #include <infiniband/verbs.h>
import "C"

// PortState is the state of a port (enum ibv_port_state).
type PortState uint32

// LinkLayer is what a port's link is (IBV_LINK_LAYER_*).
type LinkLayer uint32

// States of a port.
const (
	PortNop         PortState = C.IBV_PORT_NOP
	PortDown        PortState = C.IBV_PORT_DOWN
	PortInit        PortState = C.IBV_PORT_INIT
	PortArmed       PortState = C.IBV_PORT_ARMED
	PortActive      PortState = C.IBV_PORT_ACTIVE
	PortActiveDefer PortState = C.IBV_PORT_ACTIVE_DEFER
)

// Link layers.
const (
	LinkLayerUnspecified LinkLayer = C.IBV_LINK_LAYER_UNSPECIFIED
	LinkLayerInfiniBand  LinkLayer = C.IBV_LINK_LAYER_INFINIBAND
	LinkLayerEthernet    LinkLayer = C.IBV_LINK_LAYER_ETHERNET
)

// What ports and GIDs are called in listings; ibstat(8) and the kernel's sysfs use the same words.
var (
	portStateNames = names[PortState]{"port state", []named[PortState]{
		{PortNop, "nop"}, {PortDown, "down"}, {PortInit, "init"}, {PortArmed, "armed"}, {PortActive, "active"},
		{PortActiveDefer, "active deferred"},
	}}
	linkLayerNames = names[LinkLayer]{"link layer", []named[LinkLayer]{
		{LinkLayerUnspecified, "unspecified"}, {LinkLayerInfiniBand, "InfiniBand"}, {LinkLayerEthernet, "Ethernet"},
	}}
	gidTypeNames = names[uint32]{"GID type", []named[uint32]{
		{C.IBV_GID_TYPE_IB, "IB"}, {C.IBV_GID_TYPE_ROCE_V1, "RoCE v1"},
		{C.IBV_GID_TYPE_ROCE_V2, "RoCE v2"},
	}}
)

func (s PortState) String() string { return portStateNames.name(s) }

func (l LinkLayer) String() string { return linkLayerNames.name(l) }
