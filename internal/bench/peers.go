package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// peer is another implementation: a program of the distribution.  Its server and its client talk on this host.
type peer struct {
	figure string
	server []string // the client is the same with the server's address and more
	client []string
	port   string // the flag of the server's port
	to     string // the flag of the port that the client connects to
	rounds int
	read   func(printed string) (float64, error)
}

// peers are bounded by their counts of messages, which are small where one takes milliseconds.
var peers = []peer{
	{
		figure: "libfabric-tcp-64B", server: words("fi_pingpong -p tcp -e msg -S 64 -I 5000"), port: "-B", to: "-P",
		rounds: 3, read: pingpongTime,
	},
	{
		figure: "libfabric-rxd-64B", server: words("fi_pingpong -p udp;ofi_rxd -e rdm -S 64 -I 500"), port: "-B",
		to: "-P", rounds: 3, read: pingpongTime,
	},
	{
		figure: "libfabric-rxd-1MiB", server: words("fi_pingpong -p udp;ofi_rxd -e rdm -S 1048576 -I 50"), port: "-B",
		to: "-P", rounds: 3, read: pingpongBandwidth,
	},
	{
		figure: "ucx-put-64B", server: words("ucx_perftest"),
		client: words("-t put_lat -d memory -x posix -D short -s 64 -n 500000 -f"), port: "-p", to: "-p",
		rounds: rounds, read: ucxMedian,
	},
	{
		figure: "ucx-tag-64B", server: words("env UCX_TLS=posix ucx_perftest"),
		client: words("-t tag_lat -s 64 -n 500000 -f"), port: "-p", to: "-p", rounds: rounds, read: ucxMedian,
	},
}

// peerRows are compared with other implementations on the same machine in the same run.
var peerRows = []row{
	{
		title: "link udp: 64 B SEND one way, relative to libfabric tcp", figure: "udp-send-64B", unit: "us",
		relativeTo: "libfabric-tcp-64B", mark: 1,
	},
	{
		title: "link udp: 64 B SEND one way, relative to libfabric udp;ofi_rxd", figure: "udp-send-64B", unit: "us",
		relativeTo: "libfabric-rxd-64B", mark: 1,
	},
	{
		title: "link udp: 1 MiB RDMA WRITE, relative to libfabric udp;ofi_rxd", figure: "udp-write-1MiB", unit: "GB/s",
		relativeTo: "libfabric-rxd-1MiB", mark: 3, atLeast: true,
	},
	{
		title: "64 B RDMA WRITE one way, relative to UCX posix put_lat", figure: "write-64B-one-way", unit: "us",
		relativeTo: "ucx-put-64B", mark: 1.5,
	},
	{
		title: "64 B SEND one way, relative to UCX posix tag_lat", figure: "send-64B-one-way", unit: "us",
		relativeTo: "ucx-tag-64B", mark: 1,
	},
}

// peerPatience bounds a round of one peer.
const peerPatience = 20 * time.Second

func words(line string) []string { return strings.Fields(line) }

// measurePeers measures rdmarun and its peers. skipped has the reason for each value that cannot be measured.
func measurePeers(ctx context.Context, p paths, all figures, skipped map[string]string) error {
	for _, program := range []string{"bench_latency", "bench_udp"} {
		if err := takeRows(ctx, filepath.Join(p.native, program), all); err != nil {
			return fmt.Errorf("%s: %w", program, err)
		}
	}
	for _, one := range peers {
		var values []float64
		for range one.rounds {
			value, err := one.measure(ctx)
			if err != nil {
				skipped[one.figure] = err.Error()
				break
			}
			values = append(values, value)
		}
		if len(values) == one.rounds {
			all[one.figure] = median(values)
		}
	}
	return ctx.Err()
}

// measure runs a server and a client once.
func (p peer) measure(ctx context.Context) (float64, error) {
	program := p.server[0]
	if program == "env" {
		program = p.server[2]
	}
	if _, err := exec.LookPath(program); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, peerPatience)
	defer cancel()
	port, err := freePort()
	if err != nil {
		return 0, err
	}
	server := exec.CommandContext(ctx, p.server[0], append(p.server[1:len(p.server):len(p.server)], p.port, port)...)
	if err := server.Start(); err != nil {
		return 0, err
	}
	defer server.Wait()
	defer server.Process.Kill()
	arguments := append(p.server[1:len(p.server):len(p.server)], p.client...)
	arguments = append(arguments, p.to, port, "127.0.0.1")
	for {
		// Until the server listens a client ends at once.
		printed, err := exec.CommandContext(ctx, p.server[0], arguments...).CombinedOutput()
		if err == nil {
			return p.read(string(printed))
		}
		if ctx.Err() != nil {
			return 0, fmt.Errorf("%s: not done in %v: %s", program, peerPatience, lastLine(printed))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, err
}

func lastLine(printed []byte) string {
	lines := bytes.Split(bytes.TrimSpace(printed), []byte("\n"))
	return string(lines[len(lines)-1])
}

// pingpongFields reads the last line of fi_pingpong: bytes, sent, acknowledged, total, time, MB/s, us each way,
// Mxfers/s.
func pingpongFields(printed string) ([]string, error) {
	fields := strings.Fields(lastLine([]byte(printed)))
	if len(fields) != 8 {
		return nil, fmt.Errorf("fi_pingpong printed no figures: %s", lastLine([]byte(printed)))
	}
	return fields, nil
}

func pingpongTime(printed string) (float64, error) {
	fields, err := pingpongFields(printed)
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(fields[6], 64)
}

func pingpongBandwidth(printed string) (float64, error) {
	fields, err := pingpongFields(printed)
	if err != nil {
		return 0, err
	}
	value, err := strconv.ParseFloat(fields[5], 64)
	return value / 1000, err // GB/s
}

// ucxMedian reads the last line of ucx_perftest: iterations, the median and other times in us.
func ucxMedian(printed string) (float64, error) {
	fields := strings.Fields(lastLine([]byte(printed)))
	if len(fields) < 3 {
		return 0, errors.New("ucx_perftest printed no figures")
	}
	return strconv.ParseFloat(fields[1], 64)
}
