package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"rdmarun/internal/netns"
)

const (
	// meshHosts measure each with each other, in rounds, each pair for meshTime milliseconds.
	meshHosts, meshTime = 16, 200
	// meshMeasure is how. With 128 messages in flight (8 MiB), where sixteen hosts share a processor, the last
	// ones of a pair would take half of its time.
	meshMeasure = "kind: bandwidth, op: RDMA_WRITE, sizes: [64KiB], depth: 16, warmup: 1ns"
)

// labOfNamespaces writes a lab of network namespaces, on which roles are in turns.
func labOfNamespaces(hosts *netns.Hosts, folder string) (string, error) {
	return written(folder, "namespaces.yaml", "rdmarun: lab/v1\nhosts:\n", len(hosts.Processes)+1, func(i int) string {
		if i < len(hosts.Processes) {
			return fmt.Sprintf(
				"  a%d: {command: [%s], address: %s}\n", i+1, strings.Join(netns.On(hosts.Processes[i]), ", "),
				netns.Address(i),
			)
		}
		var names []string
		for i := range hosts.Processes {
			names = append(names, fmt.Sprintf("a%d", i+1))
		}
		return fmt.Sprintf("place: {\"*\": [%s]}\n", strings.Join(names, ", "))
	})
}

// measureMeshes takes meshes of hosts that are network namespaces, where there can be any.
func measureMeshes(ctx context.Context, p paths, all figures, skipped map[string]string) error {
	hosts, err := netns.Bridge(ctx, meshHosts)
	if err != nil {
		skipped["mesh-16-ideal"] = err.Error()
		return nil
	}
	defer hosts.Close()
	return inFolder(ctx, p, all, func(ctx context.Context, p paths, folder string, all figures) error {
		lab, err := labOfNamespaces(hosts, folder)
		if err != nil {
			return err
		}
		return measureMesh(ctx, p, folder, lab, all)
	})
}

// measureMesh takes all pairs of a mesh, and what the same hosts take without it.
func measureMesh(ctx context.Context, p paths, folder, lab string, all figures) error {
	// Nothing is measured again: the rounds are what is asked for.
	steps := []string{
		"{role: \"node[0]\", log: no mesh}",
		fmt.Sprintf("{mesh: {role: node, tolerance: 0.0001, measure: {%s, duration: %dms}}}", meshMeasure, meshTime),
	}
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
