package program

import (
	"bufio"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Listener is where a program waits for connections.
type Listener struct {
	// Address is 0.0.0.0 or :: for any address.
	Address netip.AddrPort
	// By is ByCM or ByTCP.
	By string
}

// By whom connections are made.
const (
	ByCM  = "rdma_cm"
	ByTCP = "tcp"
)

// Listeners are where the processes of the program listen: by the connection manager, of soft or of the kernel, and by
// TCP.
func (p *Program) Listeners() ([]Listener, error) {
	list, err := listenersOf(p.Processes(), p.config.Soft != nil)
	if err != nil {
		return nil, fmt.Errorf("listeners of program of %s: %w", p.config.Name, err)
	}
	return list, nil
}

func listenersOf(processes []int, onSoft bool) (list []Listener, err error) {
	namespaces := map[string]bool{}
	sockets := map[string]bool{}
	for _, pid := range processes {
		addSockets(sockets, pid)
	}
	for _, pid := range processes {
		// A program may be in a network of its own.
		namespace, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
		if err != nil || namespaces[namespace] {
			continue // it has ended, or its network was looked at
		}
		namespaces[namespace] = true
		for _, file := range []struct {
			name string
			read func(fields []string) (inode string, listener Listener, listens bool)
		}{{"unix", unixListener}, {"tcp", tcpListener}, {"tcp6", tcpListener}} {
			err := eachRow(fmt.Sprintf("/proc/%d/net/%s", pid, file.name), func(fields []string) {
				if inode, listener, listens := file.read(fields); listens && sockets[inode] {
					list = append(list, listener)
				}
			})
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
	}
	if !onSoft {
		ids, err := kernelListeners(processes)
		if err != nil {
			return nil, err
		}
		list = append(list, ids...)
	}
	slices.SortFunc(list, func(a, b Listener) int {
		return cmp.Or(cmp.Compare(a.By, b.By), a.Address.Compare(b.Address))
	})
	return slices.Compact(list), nil
}

// addSockets adds the inodes of the sockets of a process.
func addSockets(sockets map[string]bool, pid int) {
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, link := range links {
		target, _ := os.Readlink(link)
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			sockets[strings.TrimSuffix(inode, "]")] = true
		}
	}
}

// eachRow calls row with the fields of each row of a file of /proc/PID/net.
func eachRow(path string, row func(fields []string)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	rows := bufio.NewScanner(file)
	for rows.Scan() {
		row(strings.Fields(rows.Text()))
	}
	// A process that ends while its file is read has no more rows.
	return nil
}

// softName is the name of a socket of soft. It is of a fabric, or of the ports of the host, and has port space, port,
// family and address (soft/ipc/claim.c, write_port and soft_claim_make).
var softName = regexp.MustCompile(
	`^@rdmarun/(?:[A-Za-z0-9._-]*|/\d+)/[0-9a-f]+/(\d+)/(?:4|6|46)/([0-9a-f.:]+)(?:/[0-9a-f]+)?(?:=\d+)?$`,
)

// unixListener reads a row of /proc/net/unix: Num RefCount Protocol Flags Type St Inode Path.
func unixListener(fields []string) (inode string, listener Listener, listens bool) {
	const accepts = "00010000" // __SO_ACCEPTCON
	if len(fields) != 8 || fields[3] != accepts {
		return "", Listener{}, false
	}
	parts := softName.FindStringSubmatch(fields[7])
	if parts == nil {
		return "", Listener{}, false
	}
	port, err := strconv.ParseUint(parts[1], 10, 16)
	address, wrong := netip.ParseAddr(parts[2])
	return fields[6], Listener{netip.AddrPortFrom(address, uint16(port)), ByCM}, err == nil && wrong == nil
}

// tcpListener reads a row of /proc/net/tcp: sl local_address rem_address st queues timer retransmits uid timeout inode.
func tcpListener(fields []string) (inode string, listener Listener, listens bool) {
	const listening = "0A"
	if len(fields) < 10 || fields[3] != listening {
		return "", Listener{}, false
	}
	host, number, _ := strings.Cut(fields[1], ":")
	port, err := strconv.ParseUint(number, 16, 16)
	bytes, wrong := hex.DecodeString(host)
	if err != nil || wrong != nil || len(bytes)%4 != 0 {
		return "", Listener{}, false
	}
	// Numbers of 32 bits, in the order of a little-endian machine.
	for word := range slices.Chunk(bytes, 4) {
		slices.Reverse(word)
	}
	address, known := netip.AddrFromSlice(bytes)
	return fields[9], Listener{netip.AddrPortFrom(address, uint16(port)), ByTCP}, known
}
