package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

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
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			if provider != "" {
				if err := checkProvider(provider); err != nil {
					return err
				}
			}
			list, err := collectDevices(provider)
			if err != nil {
				return err
			}
			list.Links = softLinks(list.Devices)
			for _, u := range list.Unavailable {
				fmt.Fprintf(a.stderr, "rdmarun: provider %q cannot be used: %s\n", u.Provider, u.Reason)
			}
			if format.value == "json" {
				return printJSON(a.stdout, list)
			}
			if err := printDeviceTable(a.stdout, list.Devices); err != nil {
				return err
			}
			return printLinks(a.stdout, list.Links)
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

// deviceListVersion is raised when a field of the JSON changes its meaning or goes away.
const deviceListVersion = 1

// deviceList is what `devices --format json` prints; scripts read it, so names stay.
type deviceList struct {
	Version     int                   `json:"version"`
	Devices     []deviceRow           `json:"devices"`
	Unavailable []unavailableProvider `json:"unavailable"`
	Links       []linkRow             `json:"links,omitempty"` // of provider soft
}

// newDeviceList is an empty list; its slices are not nil, so that JSON has [] and not null.
func newDeviceList() deviceList {
	return deviceList{
		Version:     deviceListVersion,
		Devices:     []deviceRow{},
		Unavailable: []unavailableProvider{},
	}
}

type linkRow struct {
	Name string `json:"name"`
	What string `json:"what"` // its delay and rate, in words
}

// softLinks are what may carry the messages of a device of soft.
func softLinks(devices []deviceRow) (rows []linkRow) {
	if !slices.ContainsFunc(devices, func(d deviceRow) bool { return d.Provider == rdmacore.Soft }) {
		return nil
	}
	for _, name := range rdmacore.Links() {
		rows = append(rows, linkRow{name, rdmacore.LinkText(name)})
	}
	return rows
}

func printLinks(w io.Writer, links []linkRow) error {
	if len(links) == 0 {
		return nil
	}
	fmt.Fprintln(w, "\nsoft0 is virtual: its RATE limits nothing.\n--link chooses what carries its messages:")
	table := newTable(w)
	for _, link := range links {
		writeRow(table, "  "+link.Name, link.What)
	}
	return table.Flush()
}

type unavailableProvider struct {
	Provider string `json:"provider"`
	Reason   string `json:"reason"`
}

type deviceRow struct {
	Provider string    `json:"provider"`
	Name     string    `json:"name"`
	GUID     string    `json:"guid"` // node GUID, 16 hexadecimal digits
	Caps     []string  `json:"caps"` // what it can do: transports, then operations
	Ports    []portRow `json:"ports"`
}

type portRow struct {
	Number    int      `json:"number"`
	State     string   `json:"state"`
	LinkLayer string   `json:"link_layer"`
	RateGbps  float64  `json:"rate_gbps"`
	ActiveMTU int      `json:"active_mtu"` // bytes of payload in a packet
	MaxMTU    int      `json:"max_mtu"`
	Netdev    string   `json:"netdev,omitempty"`
	GIDs      []gidRow `json:"gids"`
	Addresses []string `json:"addresses"` // by which rdma_cm reaches the port
}

type gidRow struct {
	Index   int    `json:"index"`
	GID     string `json:"gid"` // 16 bytes in IPv6 notation
	Type    string `json:"type"`
	Address string `json:"address,omitempty"` // the IP address, where the GID is made from one
}

func describeDevice(provider string, device *rdmacore.Device) (deviceRow, error) {
	row := deviceRow{
		Provider: provider,
		Name:     device.Name(),
		GUID:     fmt.Sprintf("%016x", device.GUID()),
		Caps:     []string{},
		Ports:    []portRow{},
	}
	var err error
	if row.Caps, err = capabilities(device); err != nil {
		return row, err
	}
	ports, err := device.Ports()
	if err != nil {
		return row, err
	}
	for _, port := range ports {
		row.Ports = append(row.Ports, describePort(port))
	}
	return row, nil
}

// capabilities are what scenarios may ask of a device by "requires".
func capabilities(device *rdmacore.Device) ([]string, error) {
	attr, err := device.Attr()
	if err != nil {
		return nil, err
	}
	caps := []string{}
	for _, each := range []struct {
		can  bool
		name string
	}{
		{true, "rc"}, {attr.Atomic, "atomic"}, {attr.MaxSRQ > 0, "srq"}, {attr.MaxMW > 0, "mw"},
		{attr.MaxMulticast > 0, "multicast"},
		{device.Provider().CanFault(), "fault"}, {device.Provider().Name() == rdmacore.Soft, "virtual-clock"},
	} {
		if each.can {
			caps = append(caps, each.name)
		}
	}
	return caps, nil
}

func describePort(port rdmacore.Port) portRow {
	row := portRow{
		Number:    port.Number,
		State:     port.State.String(),
		LinkLayer: port.LinkLayer.String(),
		RateGbps:  port.RateGbps,
		ActiveMTU: port.ActiveMTU,
		MaxMTU:    port.MaxMTU,
		Netdev:    port.Netdev,
		GIDs:      []gidRow{},
		Addresses: []string{},
	}
	for _, address := range port.Addresses() {
		row.Addresses = append(row.Addresses, address.String())
	}
	for _, gid := range port.GIDs {
		described := gidRow{Index: gid.Index, GID: gid.Raw.StringExpanded(), Type: gid.Type}
		if gid.Address.IsValid() {
			described.Address = gid.Address.String()
		}
		row.GIDs = append(row.GIDs, described)
	}
	return row
}

// printDeviceTable writes one row for each GID, every row complete, so that grep and awk work on it.
func printDeviceTable(w io.Writer, devices []deviceRow) error {
	table := newTable(w)
	writeRow(
		table, "PROVIDER", "DEVICE", "PORT", "STATE", "LINK", "RATE", "MTU", "NETDEV", "GID", "TYPE", "ADDRESS", "CAPS",
	)
	for _, device := range devices {
		for _, port := range device.Ports {
			for _, gid := range gidCells(port) {
				writeRow(table, append([]string{
					device.Provider, device.Name, strconv.Itoa(port.Number), port.State,
					orDash(port.LinkLayer), rateCell(port.RateGbps), strconv.Itoa(port.ActiveMTU), orDash(port.Netdev),
				}, append(gid, orDash(strings.Join(device.Caps, ",")))...)...)
			}
		}
	}
	return table.Flush()
}

func writeRow(w io.Writer, cells ...string) {
	// The tabwriter holds everything back; its Flush reports what a write here would.
	fmt.Fprintln(w, strings.Join(cells, "\t"))
}

// gidCells are the last three cells of each row of a port; a port without GIDs still has one row.  An iWARP port has
// one GID, by which nothing is reached: its addresses are shown instead.
func gidCells(port portRow) [][]string {
	if len(port.GIDs) == 0 {
		return [][]string{{"-", "-", "-"}}
	}
	var cells [][]string
	for _, gid := range port.GIDs {
		if gid.Type == "iWARP" && len(port.Addresses) > 0 {
			for _, address := range port.Addresses {
				cells = append(cells, []string{strconv.Itoa(gid.Index), gid.Type, address})
			}
			continue
		}
		address := gid.Address
		if address == "" {
			address = gid.GID
		}
		// "RoCE v2" in one word: a cell must not look like two columns.
		kind := strings.ReplaceAll(gid.Type, " ", "")
		cells = append(cells, []string{strconv.Itoa(gid.Index), orDash(kind), address})
	}
	return cells
}

func rateCell(gbps float64) string {
	if gbps == 0 {
		return "-"
	}
	return strconv.FormatFloat(gbps, 'g', -1, 64) + "Gbit/s"
}

func orDash(cell string) string {
	if cell == "" {
		return "-"
	}
	return cell
}
