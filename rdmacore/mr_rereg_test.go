package rdmacore

import (
	"syscall"
	"testing"
)

// A region moves to other memory, which it then holds, and lets go of what it had.
func TestReregMoves(t *testing.T) {
	softOnly(t, "regions that change")
	client, server := connected(t)
	first, err := NewMemory(4096)
	must(t, err)
	second, err := NewMemory(4096)
	must(t, err)
	mr, err := server.pd.RegMR(first, 0, 4096, allAccess)
	must(t, err)
	first.Release()
	old := mr.Address()
	must(t, mr.Rereg(ReregTranslation, nil, second, 64, 128, 0))
	if first.Bytes() != nil {
		t.Error("the old memory is held")
	}
	second.Release()
	if second.Bytes() == nil || mr.Length() != 128 || mr.Address() != uint64(second.Base())+64 {
		t.Errorf("%d bytes at %#x", mr.Length(), mr.Address())
	}
	copy(client.bytes(0, 8), "moved to")
	client.write(t, 1, mr)
	completion(t, client.id.SendCQ(), 1, WCSuccess)
	if got := string(second.Bytes()[64:72]); got != "moved to" {
		t.Errorf("%q where the region is", got)
	}
	client.send(t, SendWR{WRID: 2, Opcode: OpRDMAWrite, RKey: mr.RKey(), RemoteAddress: old}, 0, 8)
	completion(t, client.id.SendCQ(), 2, WCRemAccessErr)
	must(t, mr.Dereg())
	if second.Bytes() != nil {
		t.Error("memory is held")
	}
	refused(t, mr.Rereg(ReregAccess, nil, nil, 0, 0, AccessLocalWrite), syscall.EBADF)
}

// Rights and PD change under a key that stays good for the rest.
func TestReregRightsAndPD(t *testing.T) {
	softOnly(t, "regions that change")
	for _, flags := range []ReregFlags{ReregAccess, ReregPD, ReregPD | ReregAccess} {
		client, server := connected(t)
		other := newPD(t, opened(t))
		mr, err := server.pd.RegMR(server.memory, 0, 64, allAccess)
		must(t, err)
		client.write(t, 1, mr)
		completion(t, client.id.SendCQ(), 1, WCSuccess)
		must(t, mr.Rereg(flags, other, nil, 0, 0, AccessLocalWrite))
		if flags&ReregPD != 0 {
			refused(t, other.Dealloc(), syscall.EBUSY)
		}
		client.write(t, 2, mr)
		completion(t, client.id.SendCQ(), 2, WCRemAccessErr)
		must(t, mr.Dereg())
	}
}

func TestBadReregs(t *testing.T) {
	p := opened(t)
	pd := newPD(t, p)
	m, err := NewMemory(4096)
	must(t, err)
	mr, err := pd.RegMR(m, 0, 4096, allAccess)
	must(t, err)
	gone, err := NewMemory(4096)
	must(t, err)
	gone.Release()
	for _, row := range []struct {
		want           syscall.Errno
		flags          ReregFlags
		pd             *PD
		m              *Memory
		offset, length int
		access         Access
	}{
		{want: syscall.EINVAL, flags: 8},
		{want: syscall.EINVAL, flags: -1, pd: pd, m: m, length: 8},
		{want: syscall.EINVAL, flags: ReregAccess, access: AccessRemoteWrite},
		{want: syscall.EINVAL, flags: ReregTranslation, m: m, length: 0},
		{want: syscall.EFAULT, flags: ReregTranslation, m: m, offset: 1, length: 4096},
		{want: syscall.EFAULT, flags: ReregTranslation, m: m, offset: -1, length: 1},
		{want: syscall.EFAULT, flags: ReregTranslation, m: m, length: -1},
		{want: syscall.EBADF, flags: ReregTranslation, m: nil, length: 1},
		{want: syscall.EBADF, flags: ReregTranslation, m: gone, length: 1},
		{want: syscall.EBADF, flags: ReregPD},
	} {
		refused(t, mr.Rereg(row.flags, row.pd, row.m, row.offset, row.length, row.access), row.want)
	}
	if onSoft("regions that change") {
		refused(t, mr.Rereg(0, nil, nil, 0, 0, 0), syscall.EINVAL)
		foreign, err := openVirtual(t, 1).DefaultDevice()
		must(t, err)
		other, err := foreign.AllocPD()
		must(t, err)
		refused(t, mr.Rereg(ReregPD, other, nil, 0, 0, 0), syscall.EINVAL)
		must(t, other.Dealloc())
	} else {
		refused(t, mr.Rereg(ReregAccess, nil, nil, 0, 0, AccessLocalWrite), syscall.EOPNOTSUPP)
	}
	m.Release()
	if m.Bytes() == nil || mr.Length() != 4096 {
		t.Error("a refusal has let go of the memory")
	}
	must(t, mr.Dereg())
	if m.Bytes() != nil {
		t.Error("memory is held")
	}
}

// TestRefusedRegistration: a registration that the provider refuses holds neither the memory nor the domain.
func TestRefusedRegistration(t *testing.T) {
	client, _ := connected(t)
	pd, err := client.id.Device().AllocPD()
	must(t, err)
	m, err := NewMemory(4096)
	must(t, err)
	want := syscall.EINVAL // of flags that the kernel does not know
	if onSoft("FLUSH and ATOMIC_WRITE") {
		want = syscall.EOPNOTSUPP
	}
	_, err = pd.RegMR(m, 0, 64, allAccess|AccessFlushGlobal|AccessFlushPersistent)
	refused(t, err, want)
	_, err = pd.RegMRIova(m, 0, 64, 1<<64-1, allAccess)
	refused(t, err, syscall.EINVAL)
	must(t, pd.Dealloc())
	if m.Release(); m.Bytes() != nil {
		t.Error("memory is held")
	}
}

func TestRegMRIova(t *testing.T) {
	client, server := connected(t)
	const iova = 0x7000_0000_0000
	for _, access := range []Access{allAccess, allAccess | AccessRelaxedOrdering} {
		mr, err := server.pd.RegMRIova(server.memory, 4096, 4096, iova, access)
		must(t, err)
		if mr.Address() != iova {
			t.Errorf("address %#x", mr.Address())
		}
		copy(client.bytes(0, 8), "by iova!")
		client.write(t, 1, mr)
		completion(t, client.id.SendCQ(), 1, WCSuccess)
		if got := string(server.bytes(4096, 8)); got != "by iova!" {
			t.Errorf("%q", got)
		}
		must(t, mr.Dereg())
	}
	_, err := server.pd.RegMRIova(server.memory, 0, 64, iova, AccessRemoteWrite)
	refused(t, err, syscall.EINVAL)
	_, err = server.pd.RegMRIova(server.memory, 1<<30, 64, iova, 0)
	refused(t, err, syscall.EFAULT)
	_, err = server.pd.RegMRIova(nil, 0, 64, iova, 0)
	refused(t, err, syscall.EBADF)
	_, err = (*PD)(nil).RegMRIova(server.memory, 0, 64, iova, 0)
	refused(t, err, syscall.EBADF)
	_, err = server.pd.RegMRIova(server.memory, 0, 64, 1<<64-1, allAccess)
	refused(t, err, syscall.EINVAL)
}
