package doctor

import (
	"io/fs"
	"strings"
)

const infiniband = "sys/class/infiniband"

func exists(m Machine, path string) bool {
	_, err := fs.Stat(m.Files, path)
	return err == nil
}

// read returns a file's text without the spaces around it, "" when there is none.
func read(m Machine, path string) string {
	text, err := fs.ReadFile(m.Files, path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func names(m Machine, folder string) []string {
	entries, err := fs.ReadDir(m.Files, folder)
	if err != nil {
		return nil
	}
	var list []string
	for _, entry := range entries {
		list = append(list, entry.Name())
	}
	return list
}

func deviceNames(m Machine) []string { return names(m, infiniband) }

// port is a port of a device.
type port struct{ device, number, folder string }

func (p port) String() string { return p.device + "/" + p.number }

func portsOf(m Machine) []port {
	var list []port
	for _, device := range deviceNames(m) {
		for _, number := range names(m, infiniband+"/"+device+"/ports") {
			list = append(list, port{device, number, infiniband + "/" + device + "/ports/" + number})
		}
	}
	return list
}

// active tells whether traffic can pass: the file has "4: ACTIVE".
func (p port) active(m Machine) bool { return strings.HasPrefix(read(m, p.folder+"/state"), "4:") }

// iwarp tells whether the port is one of an RNIC, an iWARP device (enum rdma_node_type).
func (p port) iwarp(m Machine) bool {
	return strings.Contains(read(m, infiniband+"/"+p.device+"/node_type"), "RNIC")
}

// netdev is the network interface behind the port.
func (p port) netdev(m Machine) string {
	if name := read(m, p.folder+"/gid_attrs/ndevs/0"); name != "" {
		return name
	}
	return read(m, infiniband+"/"+p.device+"/parent") // rxe and siw name it there
}
