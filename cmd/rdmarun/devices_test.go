package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestDeviceTable(t *testing.T) {
	port := portRow{Number: 1, State: "active", LinkLayer: "Ethernet", RateGbps: 2.5, ActiveMTU: 1024, Netdev: "eth0"}
	withGIDs := port
	withGIDs.GIDs = []gidRow{
		{Index: 0, GID: "fe80:0000:0000:0000:0000:0000:0000:0001", Type: "IB"},
		{Index: 3, GID: "0000:0000:0000:0000:0000:ffff:c000:0201", Type: "RoCE v2", Address: "192.0.2.1"},
	}
	iwarp := port
	iwarp.GIDs = []gidRow{{Index: 0, GID: "969a:56af:34c7:0000:0000:0000:0000:0000", Type: "iWARP"}}
	iwarp.Addresses = []string{"198.51.100.1", "2001:db8:1::1"}
	down := portRow{Number: 2, State: "down", ActiveMTU: 256}
	tests := map[string]struct {
		ports []portRow
		rows  []string // cells, one space between
	}{
		"no ports": {nil, nil},
		"no GIDs":  {[]portRow{port}, []string{"verbs hca0 1 active Ethernet 2.5Gbit/s 1024 eth0 - - - rc,srq"}},
		"iWARP": {[]portRow{iwarp}, []string{
			"verbs hca0 1 active Ethernet 2.5Gbit/s 1024 eth0 0 iWARP 198.51.100.1 rc,srq",
			"verbs hca0 1 active Ethernet 2.5Gbit/s 1024 eth0 0 iWARP 2001:db8:1::1 rc,srq",
		}},
		"a row for each GID": {[]portRow{withGIDs, down}, []string{
			"verbs hca0 1 active Ethernet 2.5Gbit/s 1024 eth0 0 IB fe80:0000:0000:0000:0000:0000:0000:0001 rc,srq",
			"verbs hca0 1 active Ethernet 2.5Gbit/s 1024 eth0 3 RoCEv2 192.0.2.1 rc,srq",
			"verbs hca0 2 down - - 256 - - - - rc,srq",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := printDeviceTable(&out, []deviceRow{{
				Provider: "verbs", Name: "hca0", Caps: []string{"rc", "srq"}, Ports: test.ports,
			}}); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			columns := len(strings.Fields(lines[0]))
			if len(lines) != 1+len(test.rows) {
				t.Fatalf("%d rows, expected %d:\n%s", len(lines)-1, len(test.rows), out.String())
			}
			for i, want := range test.rows {
				cells := strings.Fields(lines[1+i])
				if len(cells) != columns || strings.Join(cells, " ") != want {
					t.Errorf("row %q, expected %q in %d columns", lines[1+i], want, columns)
				}
			}
		})
	}
}
