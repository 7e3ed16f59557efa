package testbed

import (
	"context"
	"errors"
	"maps"
	"syscall"
	"testing"

	"rdmarun/rdmacore"
)

// twoRoles are "driver" and a second role that steps drive.
func twoRoles(t *testing.T) (testbed *Testbed, from, to *Role) {
	t.Helper()
	testbed = newTestbed(t, &lines{}, nil)
	to, err := testbed.newRole(RoleConfig{Name: "peer"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	testbed.roles, testbed.byName["peer"] = append(testbed.roles, to), to
	return testbed, testbed.roles[0], to
}

var pairConfig = PairConfig{
	QP:    rdmacore.QPInitAttr{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1},
	Bytes: 4096, Access: rdmacore.AccessLocalWrite | rdmacore.AccessRemoteWrite,
}

// TestPair connects two roles: each end has its role's address and memory, and all of it goes with Close.
func TestPair(t *testing.T) {
	testbed, from, to := twoRoles(t)
	before := testbed.providers.First().Live()
	pair, err := NewPair(t.Context(), from, to, pairConfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range []struct {
		name       string
		end, other PairEnd
		role       *Role
	}{{"active", pair.Active, pair.Passive, from}, {"passive", pair.Passive, pair.Active, to}} {
		if at := each.end.ID.LocalAddr(); at.Addr() != each.role.Address() || each.other.ID.PeerAddr() != at {
			t.Errorf("the %s end is at %s, its peer connected to %s", each.name, at, each.other.ID.PeerAddr())
		}
		if size := each.end.MR.Length(); size != pairConfig.Bytes {
			t.Errorf("the %s end has %d bytes, want %d", each.name, size, pairConfig.Bytes)
		}
	}
	if err := pair.Close(); err != nil {
		t.Error(err)
	}
	if after := testbed.providers.First().Live(); !maps.Equal(after, before) {
		t.Errorf("left behind: %v, before %v", after, before)
	}
}

// TestPairFails: whatever it comes to fail at, nothing is left behind.
func TestPairFails(t *testing.T) {
	testbed, from, to := twoRoles(t)
	before := testbed.providers.First().Live()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		name   string
		ctx    context.Context
		change func(*PairConfig)
		want   error
	}{
		{
			"a queue pair that is too large", t.Context(), func(c *PairConfig) { c.QP.MaxSendWR = 1 << 30 },
			syscall.EINVAL,
		},
		{"no memory", t.Context(), func(c *PairConfig) { c.Bytes = 0 }, syscall.EINVAL},
		{
			"rights that do not go together", t.Context(),
			func(c *PairConfig) { c.Access = rdmacore.AccessRemoteWrite }, syscall.EINVAL,
		},
		{"no time", ended, func(*PairConfig) {}, context.Canceled},
	} {
		config := pairConfig
		test.change(&config)
		pair, err := NewPair(test.ctx, from, to, config)
		if pair != nil || !errors.Is(err, test.want) {
			t.Errorf("%s: %v, %v, want %v", test.name, pair, err, test.want)
		}
		if after := testbed.providers.First().Live(); !maps.Equal(after, before) {
			t.Errorf("%s leaves behind %v, before %v", test.name, after, before)
		}
	}
}

// TestSource: connections begin at the role's own address, unless that is of another family than the peer's.
func TestSource(t *testing.T) {
	_, from, to := twoRoles(t)
	if source := from.Source(to.Address()); source.Addr() != from.Address() || source.Port() != 0 {
		t.Errorf("source %s, want any port of %s", source, from.Address())
	}
	if source := from.Source(addressV6); source.IsValid() {
		t.Errorf("source %s of a connection to %s, want none", source, addressV6)
	}
}
