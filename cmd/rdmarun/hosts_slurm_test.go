package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdmarun/internal/address"
	"rdmarun/internal/toolchain"
)

// slurm is a cluster of two nodes on this machine, for this test alone: its daemons, ports of loopback, keys and logs
// are its own.
type slurm struct {
	folder string
	env    []string
}

// startSlurm starts one.
func startSlurm(t *testing.T) *slurm {
	t.Helper()
	for _, needed := range []string{"munged", "slurmctld", "slurmd", "srun", "squeue"} {
		if _, err := exec.LookPath(needed); err == nil {
			continue
		}
		if _, err := os.Stat("/usr/sbin/" + needed); err != nil {
			toolchain.Lacks(t, err.Error()+": \"tools/setup.sh lab\" installs it")
		}
	}
	if os.Getuid() != 0 {
		t.Skip("slurmd runs jobs as their users, which takes root")
	}
	// A path of a socket has 107 bytes at most, and munge requires a folder that other users cannot write.
	folder, err := os.MkdirTemp("/var/tmp", "slurm")
	if err != nil {
		t.Fatal(err)
	}
	s := &slurm{folder: folder, env: append(os.Environ(), "SLURM_CONF="+folder+"/slurm.conf")}
	t.Cleanup(func() {
		if t.Failed() {
			for _, log := range []string{"controller", "n1", "n2", "munge"} {
				text, _ := os.ReadFile(s.path(log + ".log"))
				t.Logf("%s.log:\n%s", log, text[max(0, len(text)-4000):])
			}
		}
		os.RemoveAll(folder)
	})
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	host, _, _ = strings.Cut(host, ".")
	key := make([]byte, 1024)
	if _, err := rand.Read(key); err != nil {
		t.Fatal(err)
	}
	var ports [3]string
	for i := range ports {
		_, ports[i], _ = net.SplitHostPort(address.Free(t))
	}
	var config strings.Builder
	fmt.Fprintf(&config, "ClusterName=lab\nSlurmctldHost=%s(127.0.0.1)\nSlurmctldPort=%s\n", host, ports[0])
	fmt.Fprintf(
		&config, "AuthType=auth/munge\nAuthInfo=socket=%s\nCredType=cred/munge\nSlurmUser=root\nSlurmdUser=root\n",
		s.path("munge.socket"),
	)
	fmt.Fprintf(&config, "StateSaveLocation=%s\nSlurmdSpoolDir=%s\n", s.path("state"), s.path("spool.%n"))
	fmt.Fprintf(&config, "SlurmctldPidFile=%s\nSlurmdPidFile=%s\nSlurmctldLogFile=%s\nSlurmdLogFile=%s\n",
		s.path("controller.pid"), s.path("%n.pid"), s.path("controller.log"), s.path("%n.log"))
	config.WriteString("ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n" +
		"JobAcctGatherType=jobacct_gather/none\n" +
		"AccountingStorageType=accounting_storage/none\nMpiDefault=none\nReturnToService=2\nKillWait=2\n")
	for i := range 2 {
		fmt.Fprintf(
			&config, "NodeName=n%d NodeHostname=%s NodeAddr=127.0.0.1 Port=%s CPUs=1 State=UNKNOWN\n", i+1, host,
			ports[i+1],
		)
	}
	config.WriteString("PartitionName=lab Nodes=ALL Default=YES MaxTime=10 State=UP\n")
	for name, text := range map[string][]byte{"munge.key": key, "slurm.conf": []byte(config.String())} {
		if err := os.WriteFile(s.path(name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(s.path("state"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.daemon(t, "munged", "--foreground", "--force", "--key-file="+s.path("munge.key"), "--socket="+
		s.path("munge.socket"),
		"--pid-file="+s.path("munge.pid"), "--log-file="+s.path("munge.log"), "--seed-file="+s.path("munge.seed"))
	s.await(t, "munge answers", func() bool {
		_, err := os.Stat(s.path("munge.socket"))
		return err == nil
	})
	s.daemon(t, "slurmctld", "-D", "-c", "-f", s.path("slurm.conf"))
	for i := range 2 {
		s.daemon(t, "slurmd", "-D", "-N", "n"+strconv.Itoa(i+1), "-f", s.path("slurm.conf"))
	}
	s.await(t, "both nodes are idle", func() bool {
		said, err := s.command("sinfo", "-h", "-t", "idle", "-o", "%D").Output()
		return err == nil && strings.TrimSpace(string(said)) == "2"
	})
	return s
}

func (s *slurm) path(name string) string { return filepath.Join(s.folder, name) }

func (s *slurm) command(words ...string) *exec.Cmd {
	command := exec.Command(words[0], words[1:]...)
	command.Env = s.env
	return command
}

// daemon runs until the end of the test.  Debian has daemons where not every PATH looks.
func (s *slurm) daemon(t *testing.T, words ...string) {
	t.Helper()
	words[0] = "/usr/sbin/" + words[0]
	daemon := s.command(words...)
	var said bytes.Buffer
	daemon.Stdout, daemon.Stderr = &said, &said
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		daemon.Process.Signal(syscall.SIGTERM)
		late := time.AfterFunc(programPatience, func() { daemon.Process.Kill() })
		daemon.Wait()
		late.Stop()
		if t.Failed() {
			t.Logf("%s: %s", words[0], said.Bytes())
		}
	})
}

func (s *slurm) await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(programPatience); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in %v not: %s", programPatience, what)
		}
	}
}

// nothingRuns waits until the cluster has no job.
func (s *slurm) nothingRuns(t *testing.T) {
	t.Helper()
	s.await(t, "no job is left", func() bool {
		said, err := s.command("squeue", "-h").Output()
		return err == nil && len(said) == 0
	})
}

// TestLabBySlurm: hosts that srun reaches; a controller that is killed leaves no job.
func TestLabBySlurm(t *testing.T) {
	s := startSlurm(t)
	t.Setenv("SLURM_CONF", s.path("slurm.conf"))
	srun := func(node string) string {
		return fmt.Sprintf("[srun, --quiet, -N1, -n1, -w, %s, env, %s=1]", node, runAsRdmarun)
	}
	lab := writeLab(
		t,
		fmt.Sprintf(
			"hosts: {a: {command: %s}, b: {command: %s}}\nplace: {server: a, client: b}\n", srun("n1"), srun("n2"),
		),
	)
	startOverLab(t, "--lab", lab, "../../scenarios/rping.yaml", "../../scenarios/negotiate.yaml").ends(t, exitOK)
	s.nothingRuns(t)

	scenario := filepath.Join(t.TempDir(), "long.yaml")
	if err := os.WriteFile(scenario, []byte(longCase), 0o600); err != nil {
		t.Fatal(err)
	}
	run := startOverLab(t, "--lab", lab, scenario)
	s.await(t, "the case runs", func() bool { return strings.Contains(run.output.String(), "waits") })
	if err := run.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = run.Wait()
	s.nothingRuns(t)

	// A job that its owner ends is a host that is gone, with srun's words.
	run = startOverLab(t, "--lab", lab, scenario)
	s.await(t, "the case runs", func() bool { return strings.Contains(run.output.String(), "waits") })
	if out, err := s.command("scancel", "-w", "n2").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if said := run.ends(t, exitEnvironment); !strings.Contains(said, "the process of b has ended") ||
		!strings.Contains(said, "host b: ") || !strings.Contains(said, "CANCELLED") {
		t.Errorf("%s", said)
	}
	s.nothingRuns(t)
}
