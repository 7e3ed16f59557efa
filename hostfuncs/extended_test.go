package hostfuncs

import (
	"syscall"
	"testing"
	"unsafe"

	"rdmarun/rdmacore"
)

const (
	stampsAt = 0x2000
	changeAt = 0x2100
	clockAt  = 0x2140
)

// withQueue is one more connection to the pair's listener, with that CQ at its active end.
func (p *pair) withQueue(t testing.TB, cq uint64) (active, passive uint64) {
	t.Helper()
	i := p.Instance
	put(i, attrAt, QPInitAttr{StructSize: uint32(unsafe.Sizeof(QPInitAttr{})), MaxSendWR: 8, MaxRecvWR: 8,
		MaxSendSGE: 2, MaxRecvSGE: 2, SendCQ: Handle(cq)})
	active = must(t, i, "create_ep", p.channel, infoAt, p.pd, attrAt)
	must(t, i, "connect", active, 0)
	passive = uint64(p.event(t, p.listener, rdmacore.EventConnectRequest).EP)
	must(t, i, "accept", passive, 0)
	p.event(t, active, rdmacore.EventEstablished)
	p.event(t, passive, rdmacore.EventEstablished)
	return active, passive
}

// write posts an RDMA WRITE of 8 bytes from the buffer's start.
func write(t testing.TB, i *Instance, ep, id uint64, local uint32, remote MR) {
	t.Helper()
	put(i, sgeAt, SGE{Address: bufferAt, Length: 8, LKey: local})
	put(i, wrAt, SendWR{WRID: id, Opcode: uint32(rdmacore.OpRDMAWrite), Flags: uint32(rdmacore.SendSignaled), NumSGE: 1,
		RemoteAddress: remote.Address, RKey: remote.RKey})
	must(t, i, "post_send", must(t, i, "ep_qp", ep), wrAt, 1, sgeAt, 1, postedAt)
}

const everyRight = uint64(rdmacore.AccessLocalWrite | rdmacore.AccessRemoteWrite)

func TestTimestampsOfACQ(t *testing.T) {
	p := connectPair(t)
	i := p.Instance
	must(t, i, "query_rt_values", 0, clockAt)
	before := take[uint64](i, clockAt)
	fields := uint64(rdmacore.WCFieldsStandard | rdmacore.WCFieldTimestamp | rdmacore.WCFieldWallclock)
	cq := must(t, i, "create_cq_ex", 0, 8, fields)
	active, _ := p.withQueue(t, cq)
	must(t, i, "reg_mr", p.pd, bufferAt, 64, everyRight, mrAt)
	keys := take[MR](i, mrAt)
	expect(t, i, syscall.ETIMEDOUT, "wait_cq_timestamps", cq, wcAt, stampsAt, 2, 0)
	for id := range uint64(2) {
		write(t, i, active, id+1, keys.LKey, keys)
		must(t, i, "wait_cq_timestamps", cq, wcAt, stampsAt, 2, timeout)
		wc, stamp := take[WC](i, wcAt), take[Timestamp](i, stampsAt)
		must(t, i, "query_rt_values", active, clockAt)
		if wc.WRID != id+1 || wc.Opcode != uint32(rdmacore.WCRDMAWrite) || stamp.Raw < before ||
			stamp.Raw > take[uint64](i, clockAt) ||
			stamp.Wallclock <= stamp.Raw {
			t.Errorf(
				"completion %+v at %+v, the clock was %d before and is %d", wc, stamp, before, take[uint64](i, clockAt),
			)
		}
		before = stamp.Raw
	}
	// Without time stamps it is a queue as any other.
	write(t, i, active, 3, keys.LKey, keys)
	if n := must(t, i, "wait_cq", cq, wcAt, 1, timeout); n != 1 || take[WC](i, wcAt).WRID != 3 {
		t.Errorf("%d completions, %+v", n, take[WC](i, wcAt))
	}
	if n := must(t, i, "poll_cq_timestamps", cq, wcAt, stampsAt, 2); n != 0 {
		t.Errorf("%d completions left", n)
	}
	// And of one without them they are 0.
	plain := must(t, i, "ep_send_cq", p.active)
	write(t, i, p.active, 4, keys.LKey, keys)
	put(i, stampsAt, Timestamp{Raw: 1, Wallclock: 1})
	must(t, i, "wait_cq_timestamps", plain, wcAt, stampsAt, 1, timeout)
	if stamp := take[Timestamp](i, stampsAt); take[WC](i, wcAt).WRID != 4 || stamp.Raw != 0 || stamp.Wallclock != 0 {
		t.Errorf("completion %+v at %+v", take[WC](i, wcAt), stamp)
	}
	must(t, i, "destroy_ep", active)
	must(t, i, "destroy_cq", cq)
	expect(t, i, syscall.EBADF, "poll_cq_timestamps", cq, wcAt, stampsAt, 1)
}

func TestBadExtendedCQs(t *testing.T) {
	i := newInstance(t, 1<<16, Config{})
	for _, row := range []struct {
		want            syscall.Errno
		entries, fields uint64
	}{
		{syscall.EINVAL, 0, 127}, {syscall.EINVAL, 1 << 31, 127}, {syscall.EINVAL, 0xffffffff, 0},
		{syscall.EOPNOTSUPP, 8, uint64(rdmacore.WCFieldTMInfo)}, {syscall.EOPNOTSUPP, 8, 1 << 31},
	} {
		expect(t, i, row.want, "create_cq_ex", 0, row.entries, row.fields)
	}
	pd, cq := must(t, i, "alloc_pd", 0), must(t, i, "create_cq_ex", 0, 8, 0)
	expect(t, i, syscall.EBADF, "create_cq_ex", pd, 8, 127)
	for _, name := range []string{"poll_cq_timestamps", "wait_cq_timestamps"} {
		expect(t, i, syscall.EBADF, name, pd, wcAt, stampsAt, 1, 0)
		expect(t, i, syscall.EFAULT, name, cq, wcAt, 1<<31, 1, 0)
		expect(t, i, syscall.EFAULT, name, cq, 1<<31, stampsAt, 1, 0)
		expect(t, i, syscall.EINVAL, name, cq, wcAt, stampsAt+4, 1, 0)
		expect(t, i, syscall.EFAULT, name, cq, wcAt, stampsAt, 1<<28, 0)
	}
	expect(t, i, syscall.EFAULT, "query_rt_values", 0, 1<<31)
	expect(t, i, syscall.EBADF, "query_rt_values", pd, clockAt)
}

// refusedWrite waits for the completion of a write that must be refused.
func refusedWrite(t testing.TB, i *Instance, ep, id uint64) {
	t.Helper()
	must(t, i, "wait_cq", must(t, i, "ep_send_cq", ep), wcAt, 1, timeout)
	if wc := take[WC](i, wcAt); wc.WRID != id || wc.Status != uint32(rdmacore.WCRemAccessErr) {
		t.Errorf("completion %+v", wc)
	}
}

func TestChangedRegion(t *testing.T) {
	p := connectPair(t)
	i := p.Instance
	must(t, i, "reg_mr", p.pd, bufferAt, 8, 1, mrAt)
	local := take[MR](i, mrAt).LKey
	region := must(t, i, "reg_mr", p.pd, bufferAt+64, 64, everyRight, mrAt)
	old := take[MR](i, mrAt)
	put(i, changeAt, MRChange{StructSize: uint32(unsafe.Sizeof(MRChange{})), Flags: uint32(rdmacore.ReregTranslation),
		Start: bufferAt + 128, Length: 32})
	must(t, i, "rereg_mr", region, changeAt, mrAt)
	now := take[MR](i, mrAt)
	if now.Address != bufferAt+128 || old.Address != bufferAt+64 {
		t.Errorf("moved from %#x to %#x", old.Address, now.Address)
	}
	put(i, bufferAt, uint64(0x0123456789abcdef))
	write(t, i, p.active, 1, local, now)
	must(t, i, "wait_cq", must(t, i, "ep_send_cq", p.active), wcAt, 1, timeout)
	if got := take[uint64](i, bufferAt+128); got != 0x0123456789abcdef || take[uint64](i, bufferAt+64) != 0 {
		t.Errorf("%#x where the region is", got)
	}
	write(t, i, p.active, 2, local, old)
	refusedWrite(t, i, p.active, 2)
	// Rights and PD; the connection of before has ended with its error.
	for at, change := range []MRChange{
		{Flags: uint32(rdmacore.ReregAccess), Access: uint32(rdmacore.AccessLocalWrite)},
		{
			Flags: uint32(rdmacore.ReregPD | rdmacore.ReregAccess), PD: Handle(must(t, i, "alloc_pd", 0)),
			Access: uint32(everyRight),
		},
	} {
		change.StructSize = uint32(unsafe.Sizeof(change))
		put(i, changeAt, change)
		must(t, i, "rereg_mr", region, changeAt, mrAt)
		active, _ := p.withQueue(t, 0)
		write(t, i, active, uint64(at), local, take[MR](i, mrAt))
		refusedWrite(t, i, active, uint64(at))
	}
}

func TestBadChangesOfARegion(t *testing.T) {
	i := newInstance(t, 1<<16, Config{})
	pd := must(t, i, "alloc_pd", 0)
	region := must(t, i, "reg_mr", pd, bufferAt, 64, everyRight, mrAt)
	const moved, domain, rights = uint32(rdmacore.ReregTranslation), uint32(rdmacore.ReregPD), uint32(
		rdmacore.ReregAccess,
	)
	for _, row := range []struct {
		want   syscall.Errno
		change MRChange
	}{
		{syscall.EINVAL, MRChange{}},
		{syscall.EINVAL, MRChange{Flags: 8}},
		{syscall.EINVAL, MRChange{Flags: moved, Start: bufferAt}},
		{syscall.EFAULT, MRChange{Flags: moved, Start: 0xfff0, Length: 64}},
		{syscall.EFAULT, MRChange{Flags: moved, Start: bufferAt, Length: 1 << 32}},
		{syscall.EFAULT, MRChange{Flags: moved, Start: 1<<32 + bufferAt, Length: 8}},
		{syscall.EINVAL, MRChange{Flags: rights, Access: uint32(rdmacore.AccessRemoteWrite)}},
		{syscall.EOPNOTSUPP, MRChange{Flags: rights, Access: uint32(rdmacore.AccessFlushPersistent)}},
		{syscall.EBADF, MRChange{Flags: domain}},
		{syscall.EBADF, MRChange{Flags: domain, PD: Handle(region)}},
	} {
		row.change.StructSize = uint32(unsafe.Sizeof(row.change))
		put(i, changeAt, row.change)
		expect(t, i, row.want, "rereg_mr", region, changeAt, mrAt)
	}
	put(i, changeAt, MRChange{StructSize: uint32(unsafe.Sizeof(MRChange{})), Flags: rights, Access: 1})
	expect(t, i, syscall.EBADF, "rereg_mr", pd, changeAt, mrAt)
	expect(t, i, syscall.EFAULT, "rereg_mr", region, 1<<31, mrAt)
	expect(t, i, syscall.EFAULT, "rereg_mr", region, changeAt, 1<<31)
	must(t, i, "rereg_mr", region, changeAt, mrAt)
	must(t, i, "dereg_mr", region)
	expect(t, i, syscall.EBADF, "rereg_mr", region, changeAt, mrAt)
}

func TestRegionWithAnAddressOfItsOwn(t *testing.T) {
	p := connectPair(t)
	i := p.Instance
	must(t, i, "reg_mr", p.pd, bufferAt, 8, 1, mrAt)
	local := take[MR](i, mrAt).LKey
	const page = 4096
	const iova = 0x4000_0000_0000 | (bufferAt+64)%page // at the same place of its page as the memory
	region := must(t, i, "reg_mr_iova", p.pd, bufferAt+64, 64, iova, everyRight, mrAt)
	keys := take[MR](i, mrAt)
	if keys.Address != iova {
		t.Errorf("the region is at %#x", keys.Address)
	}
	put(i, bufferAt, uint64(0xfedcba9876543210))
	keys.Address += 8
	write(t, i, p.active, 1, local, keys)
	must(t, i, "wait_cq", must(t, i, "ep_send_cq", p.active), wcAt, 1, timeout)
	if got := take[uint64](i, bufferAt+72); got != 0xfedcba9876543210 {
		t.Errorf("%#x in the region", got)
	}
	must(t, i, "dereg_mr", region)
	// wraps around
	expect(t, i, syscall.EINVAL, "reg_mr_iova", p.pd, bufferAt, page, ^uint64(page-1)|bufferAt%page, everyRight, mrAt)
	expect(t, i, syscall.EINVAL, "reg_mr_iova", p.pd, bufferAt+64, 64, iova+1, everyRight, mrAt)
	expect(t, i, syscall.EINVAL, "reg_mr_iova", p.pd, bufferAt, 64, iova, uint64(rdmacore.AccessRemoteWrite), mrAt)
	expect(t, i, syscall.EFAULT, "reg_mr_iova", p.pd, 0xfff0, 64, iova, everyRight, mrAt)
	expect(t, i, syscall.EBADF, "reg_mr_iova", p.active, bufferAt, 64, iova, everyRight, mrAt)
}

func TestPartitionKeysAndECE(t *testing.T) {
	p := connectPair(t)
	i := p.Instance
	if key := must(t, i, "query_pkey", 0, 1, 0); key != 0xffff {
		t.Errorf("key %#x", key)
	}
	if index := must(t, i, "get_pkey_index", p.active, 1, 0xffff); index != 0 {
		t.Errorf("index %d", index)
	}
	for _, row := range []struct {
		want  syscall.Errno
		name  string
		words []uint64
	}{
		{syscall.ENOENT, "query_pkey", []uint64{0, 0, 0}}, {syscall.ENOENT, "query_pkey", []uint64{0, 2, 0}},
		{syscall.ENOENT, "query_pkey", []uint64{0, 1, 1}}, {syscall.EINVAL, "query_pkey", []uint64{0, 256, 0}},
		{syscall.EINVAL, "query_pkey", []uint64{0, 1, 0xffffffff}},
		{syscall.ENOENT, "get_pkey_index", []uint64{0, 1, 0x1234}},
		{syscall.ENOENT, "get_pkey_index", []uint64{0, 9, 0xffff}},
		{syscall.EINVAL, "get_pkey_index", []uint64{0, 1, 0x1ffff}},
		{syscall.EINVAL, "get_pkey_index", []uint64{0, 256, 0xffff}},
	} {
		expect(t, i, row.want, row.name, row.words...)
	}
	expect(t, i, syscall.EBADF, "query_pkey", p.pd, 1, 0)
	expect(t, i, syscall.EBADF, "get_pkey_index", p.pd, 1, 0xffff)

	qp := must(t, i, "ep_qp", p.active)
	put(i, eceAt, ECE{StructSize: 16, VendorID: 0x15b3, Options: 1})
	expect(t, i, syscall.EOPNOTSUPP, "set_ece", qp, eceAt)
	expect(t, i, syscall.EOPNOTSUPP, "query_ece", qp, eceAt)
	expect(t, i, syscall.EBADF, "set_ece", p.active, eceAt)
	expect(t, i, syscall.EBADF, "query_ece", p.active, eceAt)
	expect(t, i, syscall.EFAULT, "set_ece", qp, 1<<31)
}

func TestWayBackOfADatagram(t *testing.T) {
	p := connectPair(t)
	i := p.Instance
	put(i, wcAt, WC{WCFlags: uint32(rdmacore.WCGRH)})
	header := [40]byte{20: 0x45, 28: 17, 32: 127, 35: 9, 36: 127, 39: 1} // IPv4, from 127.0.0.9 to 127.0.0.1
	put(i, bufferAt, header)
	must(t, i, "init_ah_from_wc", 0, wcAt, bufferAt, ahAttrAt)
	attr := take[AHAttr](i, ahAttrAt)
	if attr.DGID != [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 9} || attr.IsGlobal != 1 ||
		attr.HopLimit != 17 || attr.PortNum != 1 {
		t.Errorf("attributes %+v", attr)
	}
	must(t, i, "create_ah", p.pd, ahAttrAt, postedAt)
	for _, words := range [][]uint64{
		{0, 1 << 31, bufferAt, ahAttrAt}, {0, wcAt, 0xfff0, ahAttrAt}, {0, wcAt, bufferAt, 1 << 31},
	} {
		expect(t, i, syscall.EFAULT, "init_ah_from_wc", words...)
	}
	expect(t, i, syscall.EBADF, "init_ah_from_wc", p.pd, wcAt, bufferAt, ahAttrAt)
	put(i, wcAt, WC{})
	expect(t, i, syscall.EINVAL, "init_ah_from_wc", 0, wcAt, bufferAt, ahAttrAt)
}

func TestExtendedAttributesOfADevice(t *testing.T) {
	i := newInstance(t, 1<<16, Config{})
	put(i, attrAt, DeviceAttr{StructSize: uint32(unsafe.Sizeof(DeviceAttr{}))})
	must(t, i, "query_device", 0, attrAt)
	attr := take[DeviceAttr](i, attrAt)
	if attr.CompletionTimestampMask == 0 || attr.CoreClock == 0 || attr.PhysicalPortsEx != attr.PhysicalPorts ||
		uint32(attr.CapFlagsEx)&attr.CapFlags != attr.CapFlags || attr.MaxModerationCount == 0 {
		t.Errorf("attributes %+v", attr)
	}
	// A guest that knows the struct of 1.3 gets no more.
	old := DeviceAttr{StructSize: uint32(unsafe.Offsetof(DeviceAttr{}.CompletionTimestampMask)), CoreClock: 1}
	put(i, attrAt, old)
	must(t, i, "query_device", 0, attrAt)
	if got := take[DeviceAttr](i, attrAt); got.MaxQP != attr.MaxQP || got.CompletionTimestampMask != 0 ||
		got.CoreClock != 1 {
		t.Errorf("attributes %+v", got)
	}
}
