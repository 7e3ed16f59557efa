package doctor

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"net/netip"
	"strings"
	"testing"
	"testing/fstest"
)

// machine is one with an active RoCE port, without some files and with others.
func machine(change map[string]string) Machine {
	files := map[string]string{
		"sys/module/ib_uverbs/refcnt":                           "1",
		"sys/module/rdma_ucm/refcnt":                            "1",
		"sys/class/infiniband_verbs/uverbs0/ibdev":              "mlx5_0\n",
		"sys/class/infiniband/mlx5_0/ports/1/state":             "4: ACTIVE\n",
		"sys/class/infiniband/mlx5_0/ports/1/link_layer":        "Ethernet\n",
		"sys/class/infiniband/mlx5_0/ports/1/gids/0":            "fe80:0000:0000:0000:0000:0000:0000:0001\n",
		"sys/class/infiniband/mlx5_0/ports/1/gids/3":            "0000:0000:0000:0000:0000:ffff:0a01:000e\n",
		"sys/class/infiniband/mlx5_0/ports/1/gids/4":            noGID + "\n",
		"sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/0": "IB/RoCE v1\n",
		"sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/3": "RoCE v2\n",
		"sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0": "ens1f0\n",
		"sys/class/net/ens1f0/mtu":                              "9000\n",
	}
	for path, text := range change {
		if text == "" {
			delete(files, path)
			continue
		}
		files[path] = text
	}
	tree := fstest.MapFS{}
	for path, text := range files {
		tree[path] = &fstest.MapFile{Data: []byte(text)}
	}
	return Machine{
		Files: tree, LockedMemory: math.MaxUint64,
		Open:     func(string) error { return nil },
		SelfTest: func(context.Context) (string, error) { return "fine", nil },
		Choose:   func() error { return nil },
		Sandbox:  func() (string, error) { return "landlock", nil },
		Loopback: func(context.Context) (string, error) { return "connected", nil },
	}
}

// A table of UDP sockets as the kernel shows it, and a line of it for a local address and port in hexadecimal.
const udpTable = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode " +
	"ref pointer drops\n"

func udpLine(local string) string {
	return " 2109: " + local + " 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 13617143 2 " +
		"000000007dc052d4 0\n"
}

func TestExamine(t *testing.T) {
	const port = "sys/class/infiniband/mlx5_0/ports/1/"
	tests := map[string]struct {
		machine Machine
		id      string
		status  Status
		words   string // in detail or fix
	}{
		"modules": {machine(nil), "modules", OK, "ib_uverbs rdma_ucm"},
		"module missing": {
			machine(map[string]string{"sys/module/rdma_ucm/refcnt": ""}), "modules", Warn, "modprobe -a rdma_ucm",
		},
		"device":       {machine(nil), "devices", OK, "mlx5_0"},
		"device files": {machine(nil), "device-files", OK, "/dev/infiniband/rdma_cm /dev/infiniband/uverbs0"},
		"port":         {machine(nil), "ports", OK, "mlx5_0/1"},
		"port down": {
			machine(map[string]string{port + "state": "1: DOWN"}), "ports", Fail, "ip link set ens1f0 up",
		},
		"gids": {
			machine(nil), "gids", Warn, "mlx5_0/1 has RoCE v2 at index 3, and IB/RoCE v1 at index 0",
		},
		"gids in order": {
			machine(map[string]string{port + "gid_attrs/types/0": "RoCE v2"}), "gids", OK, "RoCE v2 at index 0 3",
		},
		"no RoCE v2": {
			machine(map[string]string{port + "gid_attrs/types/3": ""}), "gids", Fail, "ip address add",
		},
		"gids of InfiniBand": {machine(map[string]string{port + "link_layer": "InfiniBand"}), "gids", Skip, "Ethernet"},
		"iWARP has no GIDs": {machine(map[string]string{
			"sys/class/infiniband/mlx5_0/node_type": "4: RNIC", port + "gid_attrs/types/3": "",
		}), "gids", OK, "mlx5_0/1 is iWARP"},
		"iWARP needs no MTU": {machine(map[string]string{
			"sys/class/infiniband/mlx5_0/node_type": "4: RNIC", "sys/class/net/ens1f0/mtu": "1500",
		}), "mtu", Skip, "no active port"},
		"mtu": {machine(nil), "mtu", OK, "ens1f0 9000"},
		"small mtu": {
			machine(map[string]string{"sys/class/net/ens1f0/mtu": "1500"}), "mtu", Warn, "1024 bytes",
		},
		"locked memory": {machine(nil), "locked-memory", OK, "unlimited"},
		"soft":          {machine(nil), "soft", OK, "self-test fine"},
		"RoCE port is free": {
			machine(map[string]string{"proc/net/udp": udpTable + udpLine("0100007F:FBE9")}), "roce-port", OK,
			"reaches RoCE v2 hosts",
		},
		"RoCE port of rdma_rxe": {machine(map[string]string{
			"proc/net/udp": udpTable + udpLine("00000000:12B7"), "sys/module/rdma_rxe/refcnt": "1",
		}), "roce-port", Warn, "unshare -n"},
		"RoCE port of a program": {machine(map[string]string{
			"proc/net/udp":  udpTable + udpLine("0200000A:12B7"),
			"proc/net/udp6": udpTable + udpLine("00000000000000000000000001000000:12B7"),
		}), "roce-port", Warn, "taken on 10.0.0.2 of user 1000, ::1 of user 1000"},
		"no table of sockets": {machine(nil), "roce-port", Skip, "/proc/net/udp"},
	}
	little := machine(nil)
	little.LockedMemory = 64 << 10
	tests["little locked memory"] = struct {
		machine Machine
		id      string
		status  Status
		words   string
	}{little, "locked-memory", Fail, "ulimit -l unlimited"}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { expect(t, test.machine, test.id, test.status, test.words) })
	}
}

func TestWithoutDevices(t *testing.T) {
	m := Machine{
		Files: fstest.MapFS{}, LockedMemory: 8 << 20,
		SelfTest: func(context.Context) (string, error) { return "", errors.New("no luck") },
		Choose:   func() error { return errors.New("protocol not available") },
		Sandbox:  func() (string, error) { return "no landlock", errors.New("an old kernel: boot a new one") },
		Loopback: func(context.Context) (string, error) { return "", ErrNoDevice },
	}
	for _, id := range []string{"loopback", "peer"} {
		expect(t, m, id, Skip, "")
	}
	expect(t, m, "containers", OK, "not in one")
	for _, id := range []string{"devices", "device-files", "ports", "gids", "mtu"} {
		expect(t, m, id, Skip, "")
	}
	expect(t, m, "modules", Warn, "only provider soft works")
	expect(t, m, "locked-memory", Warn, "8192KiB")
	expect(t, m, "soft", Fail, "no luck")
	expect(t, m, "sandbox", Warn, "no landlock; --sandbox strict fails: an old kernel")
	expect(t, m, "sandbox", Warn, "boot a new one")
	expect(t, machine(nil), "sandbox", OK, "landlock")
	expect(
		t, m, "port-sharing", Warn,
		"(protocol not available).  On soft's link udp, a stopped process keeps its part",
	)
	expect(t, m, "port-sharing", Warn, "kill -CONT PID")
	expect(t, machine(nil), "port-sharing", OK, "none to one that is stopped")
}

func TestDeviceFilesThatDoNotOpen(t *testing.T) {
	for words, err := range map[string]error{
		"may not be opened": fs.ErrPermission, "is missing": fs.ErrNotExist, "broken": errors.New("broken"),
	} {
		m := machine(nil)
		m.Open = func(string) error { return err }
		expect(t, m, "device-files", Fail, words)
	}
}

func TestContainers(t *testing.T) {
	for name, test := range map[string]struct {
		change map[string]string
		memory uint64
		open   error
		status Status
		words  string
	}{
		"docker with all": {
			map[string]string{".dockerenv": "#"}, math.MaxUint64, nil, OK, "(docker), with devices",
		},
		"docker with nothing": {
			map[string]string{".dockerenv": "#", "sys/class/net/ens1f0/mtu": ""}, 64 << 10, fs.ErrNotExist, Warn,
			"--network host --device /dev/infiniband --ulimit memlock=-1",
		},
		"podman": {
			map[string]string{"run/.containerenv": "#"}, 64 << 10, nil, Warn, "(podman) without locked memory",
		},
		"pod": {
			map[string]string{"proc/1/cgroup": "0::/kubepods.slice/x"}, 64 << 10, fs.ErrPermission, Warn, "IPC_LOCK",
		},
		"by the environment": {
			map[string]string{"proc/1/environ": "PATH=/bin\x00container=lxc\x00"}, math.MaxUint64, nil, OK, "(lxc)",
		},
		"by systemd": {
			map[string]string{"run/systemd/container": "systemd-nspawn"}, math.MaxUint64, nil, OK, "(systemd-nspawn)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine(test.change)
			m.LockedMemory, m.Open = test.memory, func(string) error { return test.open }
			expect(t, m, "containers", test.status, test.words)
		})
	}
}

func TestConnections(t *testing.T) {
	m := machine(nil)
	expect(t, m, "loopback", OK, "connected")
	expect(t, m, "peer", Skip, "--peer")
	m.Loopback = func(context.Context) (string, error) { return "", errors.New("UNREACHABLE") }
	expect(t, m, "loopback", Fail, "UNREACHABLE")

	m.Peer = "there"
	route := Route{
		Peer: netip.MustParseAddr("192.0.2.2"), Source: netip.MustParseAddr("192.0.2.1"), Device: "mlx5_0", Port: 1,
		GID: 3, Type: "RoCE v2", MTU: 1024,
	}
	var failure error
	m.Resolve = func(context.Context, string) (Route, error) { return route, failure }
	expect(
		t, m, "peer", OK,
		"there (192.0.2.2) from 192.0.2.1, mlx5_0 port 1, GID index 3 RoCE v2, packets of up to 1024 bytes",
	)
	route.GID = -1
	expect(t, m, "peer", Warn, "lacks that address")
	failure = errors.New("no route")
	expect(t, m, "peer", Fail, "ip route get there")
	failure = ErrNoDevice
	expect(t, m, "peer", Skip, "no active device")
}

func expect(t *testing.T, m Machine, id string, status Status, words string) {
	t.Helper()
	for _, finding := range Examine(t.Context(), m) {
		if finding.ID != id {
			continue
		}
		if finding.Status != status || !strings.Contains(finding.Detail+"\n"+finding.Fix, words) {
			t.Errorf("%+v; expected %s, %q", finding, status, words)
		}
		return
	}
	t.Errorf("no check %s", id)
}
