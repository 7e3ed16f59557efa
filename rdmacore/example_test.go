package rdmacore_test

import (
	"fmt"

	"rdmarun/rdmacore"
)

// A provider has devices. soft always has one, without any hardware.
func Example() {
	provider, err := rdmacore.Open(rdmacore.Soft)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer provider.Close()
	devices, err := provider.Devices()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, device := range devices {
		fmt.Println(device.Name())
	}
	// Output: soft0
}
