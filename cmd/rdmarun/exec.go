package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"rdmarun/host/program"
	"rdmarun/rdmacore"
)

const execLong = `Run an unmodified program on the embedded provider. Its calls of
librdmacm and libibverbs use a device "soft0" inside its own process, which needs no
hardware, no kernel module and no privilege. Such programs connect to each other: a
server in one terminal, its clients in others. Programs with different --fabric cannot
reach each other. With --link local a program reaches only itself.

The provider's library is preloaded (LD_PRELOAD). So the program, and programs that it
starts, must be dynamically linked. Each process has a device of its own, and so has a
forked child. A child cannot use its parent's objects (ENODEV). Libraries that
LD_PRELOAD names already come before it, and may wrap its functions.

Tests run these programs of Debian's packages, at both ends: rdmacm-utils,
ibverbs-utils, perftest, fi_pingpong of libfabric over verbs, and pyverbs. Also
ucx_perftest over rc_verbs and ud_verbs (UCX_TLS=rc or ud), and Open MPI over UCX (exec
mpirun --mca pml ucx). rsockets (rstream, riostream, udpong) are not supported:
EOPNOTSUPP.

With --capture FILE the program writes its packets there. Processes that it starts write
to files of their own, FILE with their PID before its suffix. The last packets of a
program that is killed may be missing.

Packets that are damaged, forged or too many are dropped. A line on standard error
reports this, at most one a second. --quiet suppresses it.

A program that ends disconnects its open connections, as on a kernel's device. After a
kill, other processes of this host get the disconnect, and other hosts find out by
retries.

An adapter keeps registered memory that the program unmaps. Here requests to such memory
succeed as well, but writes are lost, and reads return zeros. For that the library
handles SIGSEGV and SIGBUS before the program's handlers. Those get all other faults.

The exit code is the program's. It is 126 when the program cannot be run this way, and
127 when it does not exist.`

// defaultFabric is that of programs that are given no other.
const defaultFabric = "default"

// execFlags are the flags of exec.
type execFlags struct {
	library string
	seed    seedFlag
	link    *formatFlag
	capture captureFlags
	fabric  string
	legal   legalFlag
	shared  bool
	quiet   bool
}

func newExecCommand(a *app) *cobra.Command {
	var flags execFlags
	command := &cobra.Command{
		Use:   "exec [--] PROGRAM [ARGS...]",
		Short: "Run an unmodified RDMA program on the embedded provider",
		Long:  execLong,
		Example: "  rdmarun exec ibv_devinfo -v\n" +
			"  UCX_TLS=rc,self rdmarun exec mpirun -np 2 --mca pml ucx ./hello\n" +
			"  rdmarun exec rping -s -a 127.0.0.1 &\n  rdmarun exec rping -c -a 127.0.0.1 -C 3 -v\n" +
			"  rdmarun exec --capture ucmatose.pcapng ./both-ends\n  rdmarun exec -- python3 my_pyverbs_test.py",
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.exec(flags, args)
		},
	}
	command.Flags().SetInterspersed(false) // arguments after the program's name are the program's
	flags.register(command)
	return command
}

// register registers what soft has as a library.
func (f *execFlags) register(command *cobra.Command) {
	command.Flags().StringVar(
		&f.library, "library", "", "the library to preload (default: "+program.Library+" next to rdmarun)",
	)
	command.Flags().Var(&f.seed, "seed", "seed of random numbers, to repeat a run")
	f.link = registerLink(command, rdmacore.LinkUDP)
	registerLegal(command, &f.legal)
	command.Flags().StringVar(
		&f.fabric, "fabric", defaultFabric, "connect to programs of this fabric only, by a name of your choice",
	)
	command.Flags().BoolVar(
		&f.shared, "shared", false,
		"share --fabric with every user of this host (default: with this user and root)",
	)
	command.Flags().BoolVarP(
		&f.quiet, "quiet", "q", false, "say nothing on stderr of packets that arrive damaged, forged or in floods",
	)
	f.capture.register(command)
}

// exec replaces this process by the program; it returns only when that failed.
func (a *app) exec(flags execFlags, args []string) error {
	path, err := findForExec(args[0])
	if err != nil {
		return err
	}
	soft, err := flags.soft()
	if err != nil {
		return err
	}
	soft.Process = os.Getpid() // the process stays the same when the program takes its place
	pairs := environmentPairs(soft.Environment(a.env))
	return withExit(exitNotRunnable, fmt.Errorf("exec %s: %w", path, syscall.Exec(path, args, pairs)))
}

// findForExec finds the program of a command line.
func findForExec(name string) (string, error) {
	path, err := program.Find(name, "", true)
	if notFound := (*program.NotFoundError)(nil); errors.As(err, &notFound) {
		return "", withExit(exitNoProgram, err)
	}
	if err != nil {
		return "", withExit(exitNotRunnable, err)
	}
	return path, nil
}

// soft checks the flags, and makes of them what is preloaded.
func (f *execFlags) soft() (*program.Soft, error) {
	if err := rdmacore.CheckFabric(f.fabric); err != nil {
		return nil, usageError("--fabric: %w", err)
	}
	if f.fabric != defaultFabric && f.link.value != rdmacore.LinkUDP {
		return nil, usageError(
			"--fabric says which programs connect to each other, and on --link %s none do: leave one of them out",
			f.link.value,
		)
	}
	if f.shared && f.link.value != rdmacore.LinkUDP {
		return nil, usageError(
			"--shared says which users' programs connect to each other, and on --link %s none do: leave one of them "+
				"out",
			f.link.value,
		)
	}
	library, err := program.FindLibrary(f.library)
	if err != nil {
		return nil, withExit(exitEnvironment, err)
	}
	capture, err := f.capture.absolute()
	if err != nil {
		return nil, err
	}
	return &program.Soft{
		Library: library, Seed: f.seed.value, Link: f.link.value, Legal: f.legal.Legal, Fabric: f.fabric,
		Shared: f.shared, Quiet: f.quiet, CapturePath: capture, SnapLength: f.capture.snapLength,
	}, nil
}
