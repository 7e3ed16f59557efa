package testbed

import (
	"strings"
	"testing"
	"testing/fstest"

	"rdmarun/rdmacore"
)

func TestCounters(t *testing.T) {
	provider, err := rdmacore.Open("soft")
	if err != nil {
		t.Fatal(err)
	}
	defer provider.Close()
	device, err := provider.DefaultDevice()
	if err != nil {
		t.Fatal(err)
	}
	const root = "sys/class/infiniband/soft0/"
	files := fstest.MapFS{}
	set := func(name, value string) { files[root+name] = &fstest.MapFile{Data: []byte(value + "\n")} }
	set("ports/1/counters/port_rcv_errors", "7")
	set("ports/1/counters/port_xmit_data", "18446744073709551615")
	set("ports/1/hw_counters/out_of_buffer", "3")
	set("ports/1/hw_counters/lifespan", "10")
	set("ports/1/hw_counters/note", "N/A (no PMA)")
	set("ports/2/counters/port_rcv_errors", "100")
	set("hw_counters/device_wide", "0")

	if configs := []RoleConfig{{}, {Port: 2}}; !HasCounters(provider, files, configs) {
		t.Error("there are counters")
	}
	if HasCounters(provider, fstest.MapFS{}, []RoleConfig{{}}) || HasCounters(provider, files, []RoleConfig{{}, {Device: "mlx5_9"}}) {
		t.Error("there are none")
	}
	r := &Role{Name: "client", device: device, files: files, port: 1, began: readCounters(files, device, 1)}
	if got := strings.Join(r.CounterNames(), " "); got != "device_wide out_of_buffer port_rcv_errors port_xmit_data" {
		t.Error(got)
	}
	set("ports/1/counters/port_rcv_errors", "9")
	set("ports/1/counters/port_xmit_data", "4") // it began anew
	for name, want := range map[string]int{"port_rcv_errors": 2, "port_xmit_data": 5, "out_of_buffer": 0, "device_wide": 0} {
		if delta, err := r.CounterDelta(name); err != nil || delta != want {
			t.Errorf("%s: %d, want %d, %v", name, delta, want, err)
		}
	}
	if _, err := r.CounterDelta("out_of_bufer"); err == nil || !strings.Contains(err.(*Failure).Hint, `"out_of_buffer"`) {
		t.Errorf("%+v", err)
	}
}
