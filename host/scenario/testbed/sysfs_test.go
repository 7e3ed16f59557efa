package testbed

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"rdmarun/rdmacore"
)

func TestParseCPUs(t *testing.T) {
	for text, want := range map[string][]int{"0": {0}, "0-3,8": {0, 1, 2, 3, 8}, "": nil, "5-5": {5}} {
		got, err := parseCPUs(text)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v %v", text, got, err)
		}
		if back := FormatCPUs(got); back != strings.ReplaceAll(text, "5-5", "5") {
			t.Errorf("%q comes back as %q", text, back)
		}
	}
	for _, text := range []string{"x", "3-1", "1,", "0-2000", "-1"} {
		if got, err := parseCPUs(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

func TestCPUsOfADevice(t *testing.T) {
	provider, err := rdmacore.Open("soft")
	if err != nil {
		t.Fatal(err)
	}
	defer provider.Close()
	device, err := provider.DefaultDevice()
	if err != nil {
		t.Fatal(err)
	}
	allowed, err := allowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	here := FormatCPUs(allowed[:1])
	const node = "sys/class/infiniband/soft0/device/numa_node"
	const list = "sys/devices/system/node/node1/cpulist"
	for name, test := range map[string]struct {
		cpus  CPUs
		files map[string]string
		want  string // CPUs, or words of the error
	}{
		"anywhere": {CPUs{}, nil, ""},
		"a list":   {CPUs{List: allowed}, nil, FormatCPUs(allowed)},
		"none such": {
			CPUs{List: []int{allowed[0], MaxCPU}}, nil,
			"there is no CPU 1023 for this process; it may run on " + FormatCPUs(allowed),
		},
		"no node":      {CPUs{Local: true}, nil, ""},
		"one node":     {CPUs{Local: true}, map[string]string{node: "-1\n"}, ""},
		"the device's": {CPUs{Local: true}, map[string]string{node: "1\n", list: here + ",1000-1023\n"}, here},
		"node out of hand": {
			CPUs{Local: true}, map[string]string{node: "1\n", list: "1023\n"}, "may run on no CPU of the node",
		},
		"node unknown": {CPUs{Local: true}, map[string]string{node: "1\n"}, "NUMA node 1"},
	} {
		t.Run(name, func(t *testing.T) {
			files := make(fstest.MapFS)
			for path, text := range test.files {
				files[path] = &fstest.MapFile{Data: []byte(text)}
			}
			got, err := test.cpus.resolve(files, device)
			text := FormatCPUs(got)
			if err != nil {
				text = err.Error()
			}
			if text != test.want && (err == nil || !strings.Contains(text, test.want)) {
				t.Errorf("%q, want %q", text, test.want)
			}
		})
	}
}

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
	const root = "sys/class/infiniband/mlx5_0/"
	files := fstest.MapFS{}
	set := func(name, value string) { files[root+name] = &fstest.MapFile{Data: []byte(value + "\n")} }
	set("ports/1/counters/port_rcv_errors", "7")
	set("ports/1/counters/port_xmit_data", "18446744073709551615")
	set("ports/1/hw_counters/out_of_buffer", "3")
	set("ports/1/hw_counters/lifespan", "10")
	set("ports/1/hw_counters/note", "N/A (no PMA)")
	set("ports/2/counters/port_rcv_errors", "100")
	set("hw_counters/device_wide", "0")

	if configs := []RoleConfig{{}, {Port: 2}}; !HasCounters(One(provider), files, configs) {
		t.Error("soft counts")
	}
	if HasCounters(One(provider), files, []RoleConfig{{}, {Device: "mlx5_9"}}) {
		t.Error("there is no such device")
	}
	if other := kernelCounters(files, "mlx5_0", 2); len(other) != 2 || other["port_rcv_errors"] != 100 ||
		len(kernelCounters(files, "mlx5_1", 1)) != 0 {
		t.Errorf("%v", other)
	}
	count := func() counters { return kernelCounters(files, "mlx5_0", 1) }
	r := &Role{Name: "client", device: device, count: count, began: count()}
	if got := strings.Join(r.counterNames(), " "); got != "device_wide out_of_buffer port_rcv_errors port_xmit_data" {
		t.Error(got)
	}
	set("ports/1/counters/port_rcv_errors", "9")
	set("ports/1/counters/port_xmit_data", "4") // it began anew
	for name, want := range map[string]int{
		"port_rcv_errors": 2, "port_xmit_data": 5, "out_of_buffer": 0, "device_wide": 0,
	} {
		if delta, err := r.CounterDelta(name); err != nil || delta != want {
			t.Errorf("%s: %d, want %d, %v", name, delta, want, err)
		}
	}
	if _, err := r.CounterDelta("out_of_bufer"); err == nil ||
		!strings.Contains(err.(*Failure).Hint, `"out_of_buffer"`) {
		t.Errorf("%+v", err)
	}
}
