package rdmacore

import (
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"
)

// TestRefusalsHaveTheLimits: a number beyond a limit of the device is reported with its name and the limit.
func TestRefusalsHaveTheLimits(t *testing.T) {
	p, client, _ := virtualPair(t, 7)
	device := client.id.Device()
	pd, err := device.AllocPD()
	must(t, err)
	defer pd.Dealloc()
	cq, err := device.CreateCQ(4)
	must(t, err)
	defer cq.Destroy()
	channel, err := p.CreateEventChannel()
	must(t, err)
	defer channel.Close()
	id, err := channel.CreateID(PortSpaceTCP)
	must(t, err)
	defer id.Destroy()
	must(t, id.BindAddr(netip.AddrPortFrom(client.id.LocalAddr().Addr(), 0)))
	queuePair := QPInitAttr{Type: QPTypeRC, SendCQ: cq, RecvCQ: cq}
	with := func(change func(*QPInitAttr)) QPInitAttr {
		changed := queuePair
		change(&changed)
		return changed
	}
	for want, call := range map[string]func() error{
		"max_send_wr is 4000000, and soft0 has at most 1048576": func() error {
			return id.CreateQP(nil, with(func(a *QPInitAttr) { a.MaxSendWR = 4e6 }))
		},
		"max_recv_sge is 33, and soft0 has at most 32": func() error {
			_, err := pd.CreateQP(with(func(a *QPInitAttr) { a.MaxRecvSGE = 33 }))
			return err
		},
		"max_inline_data is 4096, and the device has at most 1024": func() error {
			_, err := pd.CreateQP(with(func(a *QPInitAttr) { a.MaxInlineData = 4096 }))
			return err
		},
		"max_wr is 4000000000, and soft0 has at most 1048576; max_sge is 40, and soft0 has at most 32": func() error {
			_, err := pd.CreateSRQ(SRQAttr{MaxWR: 4e9, MaxSGE: 40})
			return err
		},
		"max_sge is 34, and soft0 has at most 32": func() error {
			return id.CreateSRQ(nil, SRQAttr{MaxWR: 1, MaxSGE: 34})
		},
		"cqe is 400000000, and soft0 has at most": func() error {
			_, err := device.CreateCQ(4e8)
			return err
		},
		"cqe is 400000001, and soft0 has at most": func() error { return cq.Resize(4e8 + 1) },
	} {
		if err := call(); !errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestGuestsRegisterByName: a guest's ibv_reg_mr(3) fails under that name, whichever function of the provider does it.
func TestGuestsRegisterByName(t *testing.T) {
	_, client, _ := virtualPair(t, 7)
	if _, err := client.pd.RegMRAt(client.memory, 0, 1<<40, 0); err == nil ||
		!strings.HasPrefix(err.Error(), "ibv_reg_mr: ") {
		t.Errorf("%v", err)
	}
}
