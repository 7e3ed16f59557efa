package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	// meshHosts measure each with each other, in rounds, each pair for meshTime milliseconds.
	meshHosts, meshTime = 16, 200
	// meshMeasure is how.  With 128 messages in flight, 8 MiB, the last ones of a pair would take as long as half of its time
	// where sixteen hosts share a processor.
	meshMeasure = "kind: bandwidth, op: RDMA_WRITE, sizes: [64KiB], depth: 16, warmup: 1ns"
)

// hostsOnABridge makes as many network namespaces as $1, of a user namespace of its own, and prints the process of each.  It keeps
// them while its input is open, which each of the processes reads.
const hostsOnABridge = `
set -e
ip link set lo up
ip link add lab type bridge
ip link set lab up
own=$(readlink /proc/self/ns/net)
exec 3<&0
for i in $(seq "$1"); do
	unshare -n cat <&3 >/dev/null &
	until [ "$(readlink /proc/$!/ns/net)" != "$own" ]; do sleep 0.01; done
	ip link add "port$i" type veth peer name wire netns $!
	ip link set "port$i" master lab up
	nsenter -t $! -n sh -c "ip link set lo up; ip address add 192.0.2.$i/24 dev wire; ip link set wire up"
	echo $!
done
wait
`

// namespaces are hosts that are network namespaces.
type namespaces struct {
	processes []string
	holder    *exec.Cmd
	open      io.Closer
}

// startNamespaces makes them; the error is why that cannot be here.
func startNamespaces(ctx context.Context, count int) (*namespaces, error) {
	for _, needed := range []string{"unshare", "nsenter", "ip"} {
		if _, err := exec.LookPath(needed); err != nil {
			return nil, err
		}
	}
	var complaints strings.Builder
	n := &namespaces{holder: exec.CommandContext(ctx, "unshare", "-rn", "sh", "-c", hostsOnABridge, "sh", strconv.Itoa(count))}
	n.holder.Stderr = &complaints
	open, err := n.holder.StdinPipe()
	if err != nil {
		return nil, err
	}
	said, err := n.holder.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := n.holder.Start(); err != nil {
		return nil, err
	}
	n.open = open
	for lines := bufio.NewScanner(said); len(n.processes) < count && lines.Scan(); {
		n.processes = append(n.processes, lines.Text())
	}
	if len(n.processes) < count {
		n.end()
		return nil, fmt.Errorf("no network namespaces: %s", strings.TrimSpace(complaints.String()))
	}
	return n, nil
}

func (n *namespaces) end() {
	_ = n.open.Close()
	_ = n.holder.Wait() // it was made to end
}

// lab writes a lab of the namespaces, on which roles are in turns.
func (n *namespaces) lab(folder string) (string, error) {
	return written(folder, "namespaces.yaml", "rdmarun: lab/v1\nhosts:\n", len(n.processes)+1, func(i int) string {
		if i < len(n.processes) {
			return fmt.Sprintf("  a%d: {command: [nsenter, -t, %s, -U, -n, --preserve-credentials], address: 192.0.2.%d}\n", i+1, n.processes[i], i+1)
		}
		var names []string
		for i := range n.processes {
			names = append(names, fmt.Sprintf("a%d", i+1))
		}
		return fmt.Sprintf("place: {\"*\": [%s]}\n", strings.Join(names, ", "))
	})
}

// measureMeshes takes meshes of hosts that are network namespaces, where there can be any.
func measureMeshes(ctx context.Context, p paths, all figures, skipped map[string]string) error {
	hosts, err := startNamespaces(ctx, meshHosts)
	if err != nil {
		skipped["mesh-16-ideal"] = err.Error()
		return nil
	}
	defer hosts.end()
	return inFolder(ctx, p, all, func(ctx context.Context, p paths, folder string, all figures) error {
		lab, err := hosts.lab(folder)
		if err != nil {
			return err
		}
		return measureMesh(ctx, p, folder, lab, all)
	})
}

// measureMesh takes all pairs of a mesh, and what the same hosts take without it.
func measureMesh(ctx context.Context, p paths, folder, lab string, all figures) error {
	// Nothing is measured again: the rounds are what is asked for.
	steps := []string{"{role: \"node[0]\", log: no mesh}", fmt.Sprintf("{mesh: {role: node, tolerance: 0.0001, measure: {%s, duration: %dms}}}", meshMeasure, meshTime)}
	var took [2]float64
	for i, step := range steps {
		scenario, err := written(folder, fmt.Sprintf("mesh%d.yaml", i), "rdmarun: v1\n", 1, func(int) string {
			return fmt.Sprintf("roles: {node: {count: %d}}\nsteps: [%s]\n", meshHosts, step)
		})
		if err != nil {
			return err
		}
		var walls []float64
		for range 3 {
			wall, _, err := spent(ctx, p.rdmarun, "run", "-q", "--lab", lab, scenario)
			if err != nil {
				return fmt.Errorf("%s: %w", filepath.Base(scenario), err)
			}
			walls = append(walls, wall)
		}
		took[i] = median(walls)
	}
	all["mesh-16"], all["mesh-16-ideal"] = (took[1]-took[0])/1000, (meshHosts-1)*meshTime/1000.
	return nil
}
