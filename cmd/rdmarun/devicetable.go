package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// printDeviceTable writes one row for each GID, every row complete, so that grep and awk work on it.
func printDeviceTable(w io.Writer, devices []deviceRow) error {
	table := newTable(w)
	writeRow(table, "PROVIDER", "DEVICE", "PORT", "STATE", "LINK", "RATE", "MTU", "NETDEV", "GID", "TYPE", "ADDRESS", "CAPS")
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

// gidCells are the last three cells of each row of a port; a port without GIDs still has one row.  An iWARP port has one
// GID, which nothing is reached by: its addresses are shown instead.
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
	return strconv.FormatFloat(gbps, 'g', -1, 64) + "Gb/s"
}

func orDash(cell string) string {
	if cell == "" {
		return "-"
	}
	return cell
}
