package hostfuncs

import (
	"cmp"
	"net/netip"
	"slices"
	"structs"

	"rdmarun/rdmacore"
)

// AH is what a guest learns of its address handle.
type AH struct {
	_        structs.HostLayout
	Number   uint32 `abi:"number" doc:"for send_wr.ah"`
	Reserved uint32 `abi:"reserved" doc:""`
}

func ahFunctions() []Function {
	pd := Param{"pd", HandleOf, "pd", "of the QPs that shall use it"}
	ah := Param{"ah", Out, "ah", "the handle's number for work requests"}
	return []Function{
		{
			Name: "create_ah", Since: v1_2, Capability: CapabilityWork,
			Doc: "Makes an address handle, which says where datagrams go (ibv_create_ah(3)): of ESTABLISHED or " +
				"MULTICAST_JOIN, for example.",
			Params:  []Param{pd, {"attr", In, "ah_attr", ""}, ah},
			Result:  "the AH's handle",
			Errors:  "EINVAL: the device has no such port or GID.",
			binding: bind3((*Instance).createAH),
		},
		{
			Name: "create_ah_from_wc", Since: v1_2, Capability: CapabilityWork,
			Doc: "Makes the address handle of the way back to a datagram's sender, wc.src_qp " +
				"(ibv_create_ah_from_wc(3)).",
			Params: []Param{pd, {"wc", In, "wc", "of the receive"},
				{"grh", In, "bytes", "the first 40 bytes of its buffer"}, ah},
			Result:  "the AH's handle",
			Errors:  "EINVAL: there is no header.",
			binding: bind4((*Instance).createAHFromWC),
		},
		{
			Name: "init_ah_from_wc", Since: v1_4, Capability: CapabilityWork,
			Doc: "Writes the way back to a datagram's sender, of which create_ah makes a handle " +
				"(ibv_init_ah_from_wc(3)).",
			Params: []Param{{"ep", HandleOf, "ep", "an endpoint of the device; 0 for the default device"}, {
				"wc", In, "wc", "of the receive",
			},
				{"grh", In, "bytes", "the first 40 bytes of its buffer"}, {"attr", Out, "ah_attr", ""}},
			Errors:  "EINVAL: there is no header.",
			binding: bind4((*Instance).initAHFromWC),
		},
		{
			Name: "destroy_ah", Since: v1_2, Capability: CapabilityWork,
			Doc:     "Destroys an address handle (ibv_destroy_ah(3)).",
			Params:  []Param{{"ah", HandleOf, "ah", ""}},
			binding: bind1((*Instance).destroyAH),
		},
	}
}

func (i *Instance) createAH(pdHandle Handle, at, out Pointer) int32 {
	given, wrong := read[AHAttr](i, at)
	if wrong != 0 {
		return i.badPointer("attr", wrong)
	}
	attr := given.core()
	if err := i.maySendBy(attr); err != nil {
		return i.fail(err)
	}
	return i.newAH(pdHandle, out, func(pd *rdmacore.PD) (*rdmacore.AH, error) { return pd.CreateAH(attr) })
}

func (i *Instance) createAHFromWC(pdHandle Handle, at, grhAt, out Pointer) int32 {
	wc, grh, failed := i.datagram(at, grhAt)
	if failed != 0 {
		return failed
	}
	return i.newAH(pdHandle, out, func(pd *rdmacore.PD) (*rdmacore.AH, error) {
		if i.rules.Connect != nil { // the guest may have written the header itself
			attr, err := pd.Device().InitAHFromWC(&wc, grh, 1)
			if err = cmp.Or(err, i.maySendBy(attr)); err != nil {
				return nil, err
			}
		}
		return pd.CreateAHFromWC(&wc, grh, 1)
	})
}

// datagram copies in the completion of a datagram and the header that came with it.
func (i *Instance) datagram(wcAt, grhAt Pointer) (wc rdmacore.WC, grh []byte, failed int32) {
	wc, wrong := read[rdmacore.WC](i, wcAt)
	if wrong != 0 {
		return wc, nil, i.badPointer("wc", wrong)
	}
	header, wrong := i.bytes(grhAt, rdmacore.GRHLength)
	if wrong != 0 {
		return wc, nil, i.badPointer("grh", wrong)
	}
	return wc, slices.Clone(header), 0
}

func (i *Instance) initAHFromWC(epHandle Handle, at, grhAt, out Pointer) int32 {
	device, failed := i.deviceOf(epHandle)
	if failed != 0 {
		return failed
	}
	wc, grh, failed := i.datagram(at, grhAt)
	if failed != 0 {
		return failed
	}
	attrs, wrong := view[AHAttr](i, out, 1)
	if wrong != 0 {
		return i.badPointer("attr", wrong)
	}
	attr, err := device.InitAHFromWC(&wc, grh, 1)
	if err != nil {
		return i.fail(err)
	}
	attrs[0] = ahAttrOf(&attr)
	return 0
}

func (i *Instance) newAH(pdHandle Handle, at Pointer, make func(*rdmacore.PD) (*rdmacore.AH, error)) int32 {
	pd, ok := i.pds.get(pdHandle)
	if !ok {
		return i.badHandle(kindPD)
	}
	out, wrong := view[AH](i, at, 1)
	if wrong != 0 {
		return i.badPointer("ah", wrong)
	}
	handle := create(i, &i.ahs, plainCost, func() (*rdmacore.AH, error) { return make(pd) }, (*rdmacore.AH).Destroy)
	if handle > 0 {
		ah, _ := i.ahs.get(Handle(handle))
		out[0] = AH{Number: ah.Number()}
	}
	return handle
}

func (i *Instance) destroyAH(handle Handle) int32 {
	return destroy(i, &i.ahs, handle, (*rdmacore.AH).Destroy)
}

func (a *AHAttr) core() rdmacore.AHAttr {
	return rdmacore.AHAttr{IsGlobal: a.IsGlobal != 0, DGID: netip.AddrFrom16(a.DGID), FlowLabel: a.FlowLabel,
		SGIDIndex: a.SGIDIndex, HopLimit: a.HopLimit, TrafficClass: a.TrafficClass, DLID: a.DLID, SL: a.SL,
		SrcPathBits: a.SrcPathBits, StaticRate: a.StaticRate, PortNum: a.PortNum}
}
