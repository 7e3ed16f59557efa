package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"rdmarun/rdmacore"
)

const devicesLong = `List what scenarios and guests can run on: every device of every provider, one
row for each address (GID) of each port.

A provider that cannot be used (no libraries, no kernel modules) is explained on
standard error and is no failure, unless --provider asked for it.`

func newDevicesCommand(a *app) *cobra.Command {
	format := newFormatFlag("table", "json")
	provider := ""
	command := &cobra.Command{
		Use:   "devices",
		Short: "List devices, their ports and addresses",
		Long:  devicesLong,
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			list, err := collectDevices(provider)
			if err != nil {
				return err
			}
			for _, u := range list.Unavailable {
				fmt.Fprintf(a.stderr, "rdmarun: provider %q cannot be used: %s\n", u.Provider, u.Reason)
			}
			if format.value == "json" {
				return printJSON(a.stdout, list)
			}
			return printDeviceTable(a.stdout, list.Devices)
		},
	}
	format.register(command)
	registerProvider(command, &provider, "", "only this provider (soft, verbs)")
	return command
}

// collectDevices lists the devices of one provider, or of all when name is empty.  A provider that
// was asked for by name and cannot be used is an error; any other is one row of Unavailable.
func collectDevices(name string) (deviceList, error) {
	list := newDeviceList()
	if name != "" {
		rows, err := providerDevices(name)
		if err != nil {
			return list, withExit(exitEnvironment, err)
		}
		list.Devices = append(list.Devices, rows...)
		return list, nil
	}
	for _, provider := range rdmacore.Providers() {
		rows, err := providerDevices(provider)
		if err != nil {
			list.Unavailable = append(list.Unavailable, unavailableProvider{provider, err.Error()})
			continue
		}
		if len(rows) == 0 {
			reason := "there is no RDMA device on this machine"
			list.Unavailable = append(list.Unavailable, unavailableProvider{provider, reason})
		}
		list.Devices = append(list.Devices, rows...)
	}
	return list, nil
}

func providerDevices(name string) (rows []deviceRow, err error) {
	provider, err := rdmacore.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closeErr := provider.Close(); err == nil {
			err = closeErr
		}
	}()
	devices, err := provider.Devices()
	if err != nil {
		return nil, err
	}
	for _, device := range devices {
		row, err := describeDevice(name, device)
		if err != nil {
			return nil, fmt.Errorf("device %s: %w", device.Name(), err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}
