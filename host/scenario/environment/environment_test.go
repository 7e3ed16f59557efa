package environment

import (
	"io/fs"
	"maps"
	"testing"
	"testing/fstest"

	"rdmarun/host/record"
	"rdmarun/rdmacore"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text + "\n")} }

func TestMachine(t *testing.T) {
	tests := map[string]struct {
		files fstest.MapFS
		want  map[string]string
	}{
		"nothing": {fstest.MapFS{}, map[string]string{}},
		"a server": {fstest.MapFS{
			"proc/sys/kernel/osrelease": file("6.1.0-18-amd64"),
			"proc/cpuinfo": file(
				"processor\t: 0\nmodel name\t: Xeon\n\nprocessor\t: 1\nmodel name\t: other",
			),
			"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor":  file("powersave"),
			"sys/devices/system/cpu/cpu1/cpufreq/scaling_governor":  file("performance"),
			"sys/devices/system/cpu/cpu10/cpufreq/scaling_governor": file("powersave"),
		}, map[string]string{"kernel": "6.1.0-18-amd64", "cpu": "Xeon", "governor": "performance powersave"}},
		"arm": {fstest.MapFS{
			"proc/cpuinfo": file("processor : 0\nCPU implementer : 0x41\nCPU part : 0xd0c"),
		}, map[string]string{"cpu": "implementer 0x41 part 0xd0c"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Machine(test.files); !maps.Equal(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestKernelFacts(t *testing.T) {
	const device = "sys/class/infiniband/mlx5_0/device/"
	files := fstest.MapFS{
		device + "driver":             {Mode: fs.ModeSymlink, Data: []byte("../../../../bus/pci/drivers/mlx5_core")},
		device + "current_link_speed": file("16.0 GT/s PCIe"),
		device + "current_link_width": file("16"),
		device + "numa_node":          file("1"),
		"sys/class/net/ens1f0/mtu":    file("9000"),
	}
	found := record.Device{Name: "mlx5_0", Netdev: "ens1f0"}
	kernel(files, &found)
	want := record.Device{
		Name: "mlx5_0", Netdev: "ens1f0", Module: "mlx5_core", PCI: "16.0 GT/s PCIe x16", NUMA: "1", NetdevMTU: 9000,
	}
	if found != want {
		t.Errorf("%+v, want %+v", found, want)
	}
	files[device+"numa_node"] = file("-1")
	found = record.Device{Name: "mlx5_0"}
	if kernel(files, &found); found.NUMA != "" {
		t.Errorf("NUMA node %q of a machine that has none", found.NUMA)
	}
}

func TestDriver(t *testing.T) {
	for device, want := range map[string]string{
		"mlx5_0": "mlx5", "rxe0": "rxe", "rxe_eth0": "rxe", "siw12": "siw", "irdma": "irdma",
	} {
		if got := Driver("verbs", device); got != want {
			t.Errorf("%s: %q, want %q", device, got, want)
		}
	}
	if got := Driver("soft", "rxe0"); got != "soft" {
		t.Errorf("%q", got)
	}
}

func TestSoftDevice(t *testing.T) {
	provider, err := rdmacore.Open("soft")
	if err != nil {
		t.Fatal(err)
	}
	defer provider.Close()
	device, err := provider.DefaultDevice()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Device(fstest.MapFS{}, device)
	if err != nil {
		t.Fatal(err)
	}
	if got.Provider != "soft" || got.Driver != "soft" || got.Name != device.Name() || got.MTU < 256 ||
		len(got.NodeGUID) != 19 {
		t.Errorf("%+v", got)
	}
	choice := record.Device{}
	if port(&choice, []rdmacore.Port{
		{State: rdmacore.PortDown, ActiveMTU: 1}, {State: rdmacore.PortActive, ActiveMTU: 2},
	}); choice.MTU != 2 {
		t.Error("a port that is down was chosen")
	}
}
