package rdmacore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// roundTrip checks that every name of a table parses to its value and every value formats to its name, and
// that neither occurs twice.
func roundTrip[T integer](t *testing.T, table names[T], parse func(string) (T, error), format func(T) string) {
	t.Helper()
	seen := map[T]bool{}
	for _, row := range table.rows {
		if seen[row.value] {
			t.Errorf("%s: value %d occurs twice", table.kind, row.value)
		}
		seen[row.value] = true
		if parse != nil {
			if got, err := parse(row.name); err != nil || got != row.value {
				t.Errorf("%s: parse %q = %d, %v; want %d", table.kind, row.name, got, err, row.value)
			}
		}
		if got := format(row.value); got != row.name {
			t.Errorf("%s: %d is called %q, want %q", table.kind, row.value, got, row.name)
		}
	}
	valid := table.valid()
	slices.Sort(valid)
	if len(slices.Compact(valid)) != len(table.rows) {
		t.Errorf("%s: a name occurs twice", table.kind)
	}
	if parse == nil {
		return
	}
	_, err := parse("NO_SUCH_NAME")
	var unknown *NameError
	if !errors.As(err, &unknown) || unknown.Name != "NO_SUCH_NAME" || len(unknown.Valid) != len(table.rows) {
		t.Errorf("%s: parse of an unknown name: %v", table.kind, err)
	}
}

func TestNames(t *testing.T) {
	roundTrip(t, kindNames, nil, Kind.String)
	roundTrip(t, portSpaceNames, ParsePortSpace, PortSpace.String)
	roundTrip(t, eventTypeNames, ParseEventType, EventType.String)
	roundTrip(t, qpTypeNames, ParseQPType, QPType.String)
	roundTrip(t, qpStateNames, ParseQPState, QPState.String)
	roundTrip(t, migStateNames, nil, MigState.String)
	roundTrip(t, qpAttrMaskNames, ParseQPAttrMask, QPAttrMask.String)
	roundTrip(t, accessNames, ParseAccess, Access.String)
	roundTrip(t, opcodeNames, ParseOpcode, Opcode.String)
	roundTrip(t, sendFlagsNames, ParseSendFlags, SendFlags.String)
	roundTrip(t, sendOpsNames, ParseSendOps, SendOps.String)
	roundTrip(t, packetOpsNames, ParsePacketOps, PacketOps.String)
	roundTrip(t, placementNames, ParsePlacement, Placement.String)
	roundTrip(t, selectivityNames, ParseSelectivity, Selectivity.String)
	roundTrip(t, wcStatusNames, ParseWCStatus, WCStatus.String)
	roundTrip(t, wcOpcodeNames, ParseWCOpcode, WCOpcode.String)
	roundTrip(t, wcFlagsNames, ParseWCFlags, WCFlags.String)
	roundTrip(t, wcFieldsNames, ParseWCFields, WCFields.String)
	roundTrip(t, reregFlagsNames, ParseReregFlags, ReregFlags.String)
	roundTrip(t, asyncEventTypeNames, ParseAsyncEventType, AsyncEventType.String)
	roundTrip(t, rejectNames, nil, rejectNames.name)
	roundTrip(t, sidrNames, nil, sidrNames.name)
	roundTrip(t, portStateNames, nil, PortState.String)
	roundTrip(t, linkLayerNames, nil, LinkLayer.String)
	roundTrip(t, gidTypeNames, nil, gidTypeNames.name)
}

// TestNumbers pins values that scenarios and guests rely on to those of the man pages.
func TestNumbers(t *testing.T) {
	for name, pair := range map[string][2]int64{
		"RNR_RETRY_EXC_ERR": {int64(WCRNRRetryExcErr), 13},
		"WR_FLUSH_ERR":      {int64(WCWRFlushErr), 5},
		"REM_ACCESS_ERR":    {int64(WCRemAccessErr), 10},
		"RECV":              {int64(WCRecv), 128},
		"REJECTED":          {int64(EventRejected), 8},
		"ESTABLISHED":       {int64(EventEstablished), 9},
		"TIMEWAIT_EXIT":     {int64(EventTimewaitExit), 15},
		"RDMA_READ":         {int64(OpRDMARead), 4},
		"ATOMIC_WRITE":      {int64(OpAtomicWrite), 15},
		"INLINE":            {int64(SendInline), 8},
		"FLUSH":             {int64(OpFlush), 14},
		"FLUSH completion":  {int64(WCFlush), 8},
		"FLUSH operation":   {int64(SendOpFlush), 1 << 11},
		"ATOMIC_WRITE op":   {int64(SendOpAtomicWrite), 1 << 12},
		"RELAXED_ORDERING":  {int64(AccessRelaxedOrdering), 1 << 20},
		"TCP":               {int64(PortSpaceTCP), 0x106},
		"IB":                {int64(PortSpaceIB), 0x13f},
		"DEST_QPN":          {int64(QPAttrDestQPN), 1 << 20},
		"ERR":               {int64(QPStateErr), 6},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %d, want %d", name, pair[0], pair[1])
		}
	}
}

func TestFlags(t *testing.T) {
	for text, want := range map[string]Access{
		"":                              0,
		"0":                             0,
		"LOCAL_WRITE":                   AccessLocalWrite,
		"LOCAL_WRITE|REMOTE_READ":       AccessLocalWrite | AccessRemoteRead,
		" REMOTE_READ | REMOTE_ATOMIC ": AccessRemoteRead | AccessRemoteAtomic,
	} {
		if got, err := ParseAccess(text); err != nil || got != want {
			t.Errorf("ParseAccess(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	if _, err := ParseAccess("LOCAL_WRITE|LOCAL_WRITES"); err == nil {
		t.Error("a wrong name among right ones was accepted")
	}
	if got := (AccessLocalWrite | AccessRemoteWrite | 1<<30).String(); got != "LOCAL_WRITE|REMOTE_WRITE|0x40000000" {
		t.Errorf("flags with an unknown bit: %q", got)
	}
	if got := fmt.Sprint(Access(0)); got != "0" {
		t.Errorf("no flags: %q", got)
	}
	if got := WCStatus(99).String(); !strings.Contains(got, "99") {
		t.Errorf("an unknown status: %q", got)
	}
}

func TestStatusString(t *testing.T) {
	for _, row := range []struct {
		event EventType
		value int
		space PortSpace
		want  string
	}{
		{EventEstablished, 0, PortSpaceTCP, "0"},
		{EventRejected, 8, PortSpaceTCP, "8 (INVALID_SERVICE_ID)"},
		{EventRejected, 28, PortSpaceTCP, "28 (CONSUMER_DEFINED)"},
		{EventRejected, 34, PortSpaceTCP, "34"},
		{EventRejected, -111, PortSpaceTCP, "-111 (ECONNREFUSED)"},
		{EventUnreachable, -110, PortSpaceTCP, "-110 (ETIMEDOUT)"},
		{EventUnreachable, 2, PortSpaceUDP, "2 (REJECT)"},
		{EventUnreachable, 2, PortSpaceTCP, "2"},
		{EventAddrError, -1, PortSpaceTCP, "-1 (librdmacm could not complete the step itself)"},
		{EventAddrError, -19, PortSpaceTCP, "-19 (ENODEV)"},
		{EventDisconnected, -110, PortSpaceTCP, "-110 (ETIMEDOUT)"},
	} {
		if got := StatusString(row.event, row.value, row.space); got != row.want {
			t.Errorf("%s %d: %q, want %q", row.event, row.value, got, row.want)
		}
	}
}

func TestLiveString(t *testing.T) {
	live := Live{KindMR: 1, KindQP: 2}
	if got := live.String(); got != "1 MR, 2 QP" || live.Total() != 3 {
		t.Errorf("%q, %d", got, live.Total())
	}
	if got := (Live{}).String(); got != "none" {
		t.Errorf("nothing alive: %q", got)
	}
}
