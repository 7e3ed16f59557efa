package scenario

import (
	"os"

	"rdmarun/host/record"
	"rdmarun/host/scenario/environment"
	"rdmarun/rdmacore"
)

// noteDevices writes a record of each device of a provider that roles run on, unless there is one.
func (j *jobs) noteDevices(provider *rdmacore.Provider, roles []record.RolePlace) {
	if provider == nil || !j.stream.Wants(record.DeviceUsed) {
		return
	}
	for _, role := range roles {
		if j.noteFirst(role.Device) {
			j.writeDevice(provider, role.Device)
		}
	}
}

// noteFirst tells whether a device is met for the first time.
func (j *jobs) noteFirst(name string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.noted[name] {
		return false
	}
	if j.noted == nil {
		j.noted = make(map[string]bool)
	}
	j.noted[name] = true
	return true
}

// writeDevice writes what is known of a device.  What cannot be asked is left out: the case that needs it says so.
func (j *jobs) writeDevice(provider *rdmacore.Provider, name string) {
	devices, err := provider.Devices()
	if err != nil {
		return
	}
	for _, device := range devices {
		if device.Name() == name {
			described, _ := environment.Device(os.DirFS("/"), device)
			j.stream.Write(&record.Record{Kind: record.DeviceUsed, Device: &described})
		}
	}
}
