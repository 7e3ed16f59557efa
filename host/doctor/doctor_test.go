package doctor

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"strings"
	"testing"
	"testing/fstest"
)

// machine is one with an active RoCE port, less and more some files.
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
	}
}

func TestExamine(t *testing.T) {
	const port = "sys/class/infiniband/mlx5_0/ports/1/"
	tests := map[string]struct {
		machine Machine
		id      string
		status  Status
		words   string // in detail or fix
	}{
		"modules":            {machine(nil), "modules", OK, "ib_uverbs rdma_ucm"},
		"module missing":     {machine(map[string]string{"sys/module/rdma_ucm/refcnt": ""}), "modules", Warn, "modprobe -a rdma_ucm"},
		"device":             {machine(nil), "devices", OK, "mlx5_0"},
		"device files":       {machine(nil), "device-files", OK, "/dev/infiniband/rdma_cm /dev/infiniband/uverbs0"},
		"port":               {machine(nil), "ports", OK, "mlx5_0/1"},
		"port down":          {machine(map[string]string{port + "state": "1: DOWN"}), "ports", Fail, "ip link set ens1f0 up"},
		"gids":               {machine(nil), "gids", OK, "mlx5_0/1 has RoCE v2 at index 3"},
		"no RoCE v2":         {machine(map[string]string{port + "gid_attrs/types/3": ""}), "gids", Fail, "ip address add"},
		"gids of InfiniBand": {machine(map[string]string{port + "link_layer": "InfiniBand"}), "gids", Skip, "Ethernet"},
		"mtu":                {machine(nil), "mtu", OK, "ens1f0 9000"},
		"small mtu":          {machine(map[string]string{"sys/class/net/ens1f0/mtu": "1500"}), "mtu", Warn, "1024 bytes"},
		"locked memory":      {machine(nil), "locked-memory", OK, "unlimited"},
		"soft":               {machine(nil), "soft", OK, "self-test fine"},
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
	}
	for _, id := range []string{"devices", "device-files", "ports", "gids", "mtu"} {
		expect(t, m, id, Skip, "")
	}
	expect(t, m, "modules", Warn, "only provider soft works")
	expect(t, m, "locked-memory", Warn, "8192 KiB")
	expect(t, m, "soft", Fail, "no luck")
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
