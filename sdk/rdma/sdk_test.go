package rdma

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func TestAddresses(t *testing.T) {
	for _, text := range []string{"10.1.0.14:7471", "[2001:db8::1]:1", "[fe80::1%3]:65535", "0.0.0.0:0"} {
		want := netip.MustParseAddrPort(text)
		address := AddressFrom(want)
		if got := address.AddrPort(); got != want {
			t.Errorf("%s comes back as %s", want, got)
		}
	}
	none := AddressFrom(netip.AddrPort{})
	if none.Family != 0 || none.AddrPort() != (netip.AddrPort{}) {
		t.Errorf("none is %+v", none)
	}
	mapped := AddressFrom(netip.MustParseAddrPort("[::ffff:10.1.0.14]:1"))
	if mapped.Family != familyIPv4 {
		t.Errorf("an IPv4-mapped address is of family %d", mapped.Family)
	}
}

func TestNames(t *testing.T) {
	for want, value := range map[string]interface{ String() string }{
		"RNR_RETRY_EXC_ERR":       WCRNRRetryExcErr,
		"wc_status(99)":           WCStatus(99),
		"CONNECT_REQUEST":         EventConnectRequest,
		"LOCAL_WRITE|REMOTE_READ": AccessLocalWrite | AccessRemoteRead,
		"REMOTE_WRITE|0x40000000": AccessRemoteWrite | 1<<30,
		"0":                       Access(0),
		"EADDRINUSE":              EADDRINUSE,
		"errno(4000)":             Errno(4000),
		"ATOMIC_CMP_AND_SWP":      OpAtomicCmpAndSwp,
		"RTS":                     QPStateRTS,
	} {
		if got := value.String(); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

func TestErrors(t *testing.T) {
	wc := WC{WRID: 7, Status: WCWRFlushErr}
	if err := wc.Err(); err == nil || err.Error() != "work request 7 ended with WR_FLUSH_ERR" {
		t.Error(err)
	}
	if err := (&WC{}).Err(); err != nil {
		t.Error(err)
	}
	if !errors.Is(EINVAL, EINVAL) || errors.Is(EINVAL, EBADF) {
		t.Error("errnos do not compare")
	}
	unexpected := &EventError{Want: EventEstablished, Got: EventUnreachable, Status: -110}
	if got := unexpected.Error(); got != "waited for ESTABLISHED, got UNREACHABLE with status -110 (ETIMEDOUT)" {
		t.Error(got)
	}
}

// The package is whole on other systems too, for editors and go doc; functions without a host return an error.
func TestWithoutHost(t *testing.T) {
	_, err := CreateEventChannel()
	if !errors.Is(err, ENOSYS) || !strings.Contains(err.Error(), "GOOS=wasip1") {
		t.Error(err)
	}
}

// An address of Go's own packages becomes one of a guest, and back.
func ExampleAddressFrom() {
	address := AddressFrom(netip.MustParseAddrPort("10.1.0.14:7471"))
	fmt.Println(address.AddrPort())
	// Output: 10.1.0.14:7471
}
