package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// perftestFlag is what a flag of perftest is in perf.
type perftestFlag struct {
	name string // as perftest's help begins it
	ours string // flags of perf, or what to do instead
}

// perftestFlags are all flags of perftest 24.01 and 26.01 that are not of raw Ethernet, GPUs or AES, in the order of
// its help.
var perftestFlags = []perftestFlag{
	{"-a, --all", "-a, --all"},
	{"-A, --atomic_type", "FETCH_AND_ADD only; a measure step has ATOMIC_CMP_AND_SWP, too"},
	{"-b, --bidirectional", "-b, --bidirectional"},
	{"-c, --connection", "RC only"},
	{"-C, --report-cycles", "--units cycles"},
	{"-d, --ib-dev", "-d, --device; with -d ROLE=DEVICE of one role"},
	{"-D, --duration", "-D, --duration"},
	{"-e, --events", "-e, --events"},
	{"-f, --margin", "--warmup at the beginning; none at the end"},
	{"-F, --CPU-freq", "accepted; it changes nothing"},
	{"-g, --mcg", "none; a scenario has join_multicast"},
	{"-h, --help", "-h, --help"},
	{"-H, --report-histogram", "-o hdr=FILE"},
	{"-i, --ib-port", "-d DEVICE:PORT; -i is --interval"},
	{"-I, --inline_size", "-I, --inline"},
	{"-l, --post_list", "-l, --post-list"},
	{"-L, --hop_limit", "none"},
	{"-m, --mtu", "none: the path has the MTU of the port"},
	{"-M, --MGID", "none"},
	{"-n, --iters", "-n, --iterations"},
	{"-N, --noPeak", "always: -i shows the rate over time"},
	{"-o, --outs", "--outstanding; -o is --out"},
	{"-O, --dualport", "none"},
	{"-p, --port", "-p, --meet, a TCP port (default 18516)"},
	{"-q, --qp", "-q, --qps"},
	{"-Q, --cq-mod", "-Q, --signal-every"},
	{"-r, --rx-depth", "-r, --receive-depth"},
	{"-R, --rdma_cm", "accepted; perf always does"},
	{"-s, --size", "-s, --sizes"},
	{"-S, --sl", "none"},
	{"-t, --tx-depth", "-t, --depth"},
	{"-T, --tos", "none; set_option of a scenario sets it"},
	{"-u, --qp-timeout", "none; set_option of a scenario sets ack_timeout"},
	{"-U, --report-unsorted", "none"},
	{"-V, --version", "rdmarun version"},
	{"-w, --limit_bw", "a threshold of the scenario that --print writes"},
	{"-W, --report-counters", "check of a scenario reads counters"},
	{"-x, --gid-index", "-x, --gid; also an address"},
	{"-X, --vector", "none"},
	{"-y, --limit_msgrate", "a threshold of the scenario that --print writes"},
	{"-z, --com_rdma_cm", "none: the two processes meet over TCP"},
	{"--burst_size", "burst of a measure step"},
	{"--cpu_util", "none"},
	{"--dlid", "none"},
	{"--disable_pcie_relaxed", "none"},
	{"--dont_xchg_versions", "none: both ends must be the same rdmarun"},
	{"--force-link", "none"},
	{"--inline_recv", "none"},
	{"--ipv6", "-x ADDRESS"},
	{"--latency_gap", "gap of a measure step"},
	{"--log_active_dci_streams", "none"},
	{"--log_dci_streams", "none"},
	{"--mmap", "none"},
	{"--mmap-offset", "none"},
	{"--mr_per_qp", "always"},
	{"--odp", "none"},
	{"--out_json", "-o jsonl=FILE"},
	{"--out_json_file", "-o jsonl=FILE"},
	{"--output", "-o csv=FILE has all of them"},
	{"--perform_warm_up", "--warmup (default 50ms)"},
	{"--pkey_index", "none"},
	{"--rate_limit", "rate_limit of a measure step"},
	{"--rate_limit_type", "always in software"},
	{"--rate_units", "rate_limit: 10Gbit/s, or rate_messages, of a measure step"},
	{"--recv_post_list", "receive_post_list of a measure step"},
	{"--report-both", "always"},
	{"--report-per-port", "none"},
	{"--report_gbits", "accepted; perf always does"},
	{"--retry_count", "none; connect of a scenario has retry_count"},
	{"--reversed", "the host behind the tests on the other side"},
	{"--run_infinitely", "-D 24h -i 5"},
	{"--source_ip", "-x ADDRESS"},
	{"--tclass", "none"},
	{"--typical_pkt_size", "none"},
	{"--use-srq", "none"},
	{"--use_hugepages", "none"},
	{"--use_old_post_send", "always; builders: true of a measure step posts by ibv_wr_post(3)"},
	{"--wait_destroy", "none"},
}

const perftestTopicBegins = `Two commands measure between two hosts, as with perftest:

  ib_write_bw -d mlx5_0 -x 3 -R -D 10             rdmarun perf write_bw -P verbs -d mlx5_0 -x 3 -D 10
  ib_write_bw -d mlx5_0 -x 3 -R -D 10 192.0.2.1   rdmarun perf write_bw -P verbs -d mlx5_0 -x 3 -D 10 192.0.2.1

The server prints the client's command.  --loopback instead runs both ends in one process.  A
name may begin with "ib_".  Give both ends the same tests and the same flags of them.

What perf has no flag for may be an argument of a measure step ("rdmarun explain measure"):
--print writes the scenario, which "rdmarun run" runs.

perftest                     rdmarun perf
`

// perftestHint names the flag of perf for an unknown flag, if perftest has that; "" if not.
func perftestHint(command *cobra.Command, name string) string {
	if command.Name() != "perf" {
		return ""
	}
	switch name {
	case "server": // of other tools
		return "perf is the server if no host is behind the tests"
	case "client":
		return "perf is the client if the host of the server is behind the tests"
	}
	dashed := "--" + name
	if len(name) == 1 {
		dashed = "-" + name
	}
	for _, flag := range perftestFlags {
		if slices.Contains(strings.Split(flag.name, ", "), dashed) {
			why, none := strings.CutPrefix(flag.ours, "none")
			if none {
				return fmt.Sprintf("perf has no %s of perftest%s", flag.name, why)
			}
			return fmt.Sprintf("%s of perftest is here: %s", flag.name, flag.ours)
		}
	}
	return ""
}

// perftestTopic maps perftest's flags.
func perftestTopic() string {
	var b strings.Builder
	b.WriteString(perftestTopicBegins)
	for _, flag := range perftestFlags {
		fmt.Fprintf(&b, "%-28s %s\n", flag.name, flag.ours)
	}
	return b.String()
}
