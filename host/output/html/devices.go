package html

import (
	"slices"

	"rdmarun/host/record"
)

// fewDevices is how many devices there are at most for each to have a list of its own.
const fewDevices = 3

// deviceTable has a line for each of many devices.  Values that all of them share are written once above it, so that a
// device with another firmware is easy to see.
type deviceTable struct {
	Same  []record.Fact
	Names []string
	Rows  [][]string
}

func newDeviceTable(devices []record.Device) *deviceTable {
	const deviceName = "device"
	var (
		names  []string
		values = make(map[string][]string) // of each name, by the numbers of the devices
	)
	add := func(device int, name, value string) {
		if values[name] == nil {
			names, values[name] = append(names, name), make([]string, len(devices))
		}
		values[name][device] = value
	}
	for i := range devices {
		if devices[i].Host != "" {
			add(i, "host", devices[i].Host)
		}
		add(i, deviceName, devices[i].Name)
		for _, fact := range devices[i].Facts() {
			add(i, fact.Name, fact.Value)
		}
	}
	t := &deviceTable{Rows: make([][]string, len(devices))}
	for _, name := range names {
		column := values[name]
		if len(slices.Compact(slices.Clone(column))) == 1 && name != deviceName {
			t.Same = append(t.Same, record.Fact{Name: name, Value: column[0]})
			continue
		}
		t.Names = append(t.Names, name)
		for i := range devices {
			t.Rows[i] = append(t.Rows[i], column[i])
		}
	}
	return t
}
