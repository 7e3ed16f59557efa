package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"rdmarun/rdmacore"
)

const execLong = `Run an unmodified program on the embedded provider: what it calls of librdmacm and
libibverbs goes to a device "soft0" inside its own process, which needs no hardware, no
kernel module and no privilege. Programs that run so connect to each other: a server in one
terminal, its clients in others. Those that are to be apart have a --fabric each; with
--link local a program is alone.

The library that does it is preloaded (LD_PRELOAD); the program, and programs that it
starts, are dynamically linked, and each process has a device of its own. A forked
child's device is its own as well, and what its parent has opened and made is refused
there (ENODEV). Libraries that LD_PRELOAD names already come before it, and may wrap its
functions.

Known to run, both ends so and from Debian's packages, because tests run them: the programs
of rdmacm-utils (but for rsockets, which are refused with EOPNOTSUPP: rstream, riostream,
udpong), of ibverbs-utils and of perftest, fi_pingpong of libfabric over verbs,
ucx_perftest over rc_verbs and ud_verbs (UCX_TLS=rc or ud), Open MPI over UCX (exec
mpirun --mca pml ucx), and pyverbs.

With --capture FILE the program writes its packets there; other processes, which it
starts, write theirs to files of their own, FILE with their number before its suffix.
What a program that is killed has sent last may be missing.

What arrives damaged, forged or in floods is dropped, and a line on standard error says so,
one a second at most; --quiet leaves it out.

A program that ends with connections open ends them, as one on a kernel's device does. Of
one that is killed other processes of this host hear; other hosts find out by retries.

Memory that the program unmaps while it is registered an adapter still has. Here requests
to it succeed as well, but what is written is lost, and zeros are read. For that the
library is in front of the program's handlers of SIGSEGV and SIGBUS, which have all faults
but those.

The exit code is the program's; 126 when it cannot be run this way, 127 when there is
none of that name.`

// defaultFabric is that of programs that are given no other.
const defaultFabric = "default"

// execFlags are the flags of exec.
type execFlags struct {
	library string
	seed    seedFlag
	link    *formatFlag
	capture captureFlags
	fabric  string
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
	command.Flags().SetInterspersed(false) // what stands after the program's name is the program's
	command.Flags().StringVar(
		&flags.library, "library", "", "the library to preload (default: "+softLibrary+" beside rdmarun)",
	)
	command.Flags().Var(&flags.seed, "seed", "seed of random numbers, to repeat a run")
	flags.link = registerLink(command, rdmacore.LinkUDP)
	command.Flags().StringVar(
		&flags.fabric, "fabric", defaultFabric, "connect to programs of this fabric only, by a name of your choice",
	)
	command.Flags().BoolVar(
		&flags.shared, "shared", false,
		"share --fabric with every user of this host (default: with this user and root)",
	)
	command.Flags().BoolVarP(
		&flags.quiet, "quiet", "q", false, "say nothing on stderr of packets that arrive damaged, forged or in floods",
	)
	flags.capture.register(command)
	return command
}

// exec replaces this process by the program; it returns only when that failed.
func (a *app) exec(flags execFlags, args []string) error {
	if err := rdmacore.CheckFabric(flags.fabric); err != nil {
		return usageError("--fabric: %w", err)
	}
	if flags.fabric != defaultFabric && flags.link.value != rdmacore.LinkUDP {
		return usageError(
			"--fabric says which programs connect to each other, and on --link %s none do: leave one of them out",
			flags.link.value,
		)
	}
	if flags.shared && flags.link.value != rdmacore.LinkUDP {
		return usageError(
			"--shared says which users' programs connect to each other, and on --link %s none do: leave one of them "+
				"out",
			flags.link.value,
		)
	}
	library, err := findSoftLibrary(flags.library)
	if err != nil {
		return withExit(exitEnvironment, err)
	}
	program, err := findProgram(args[0])
	if err != nil {
		return err
	}
	env := maps.Clone(a.env)
	// In front, as if the provider's library were the system's: a sanitizer must be first, and a library that wraps
	// functions of the two libraries must wrap ours.
	if others := env["LD_PRELOAD"]; others != "" {
		library = others + ":" + library
	}
	env["LD_PRELOAD"] = library
	if flags.seed.value != nil {
		env["RDMARUN_EXEC_SEED"] = strconv.FormatUint(*flags.seed.value, 10)
	}
	env["RDMARUN_EXEC_LINK"] = flags.link.value
	env["RDMARUN_EXEC_FABRIC"] = flags.fabric
	delete(env, "RDMARUN_EXEC_SHARED")
	if flags.shared {
		env["RDMARUN_EXEC_SHARED"] = "1"
	}
	delete(env, "RDMARUN_EXEC_QUIET")
	if flags.quiet {
		env["RDMARUN_EXEC_QUIET"] = "1"
	}
	if err := flags.capture.pass(env); err != nil {
		return err
	}
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		pairs = append(pairs, name+"="+env[name])
	}
	return withExit(exitNotRunnable, fmt.Errorf("exec %s: %w", program, syscall.Exec(program, args, pairs)))
}

// softLibrary is the file name of the soft provider as a library; "make build" puts it into the binary's folder.
const softLibrary = "librdmarun-soft.so"

// findSoftLibrary looks in the binary's folder, and where a package puts libraries: ../lib/rdmarun.
func findSoftLibrary(given string) (string, error) {
	if given != "" {
		path, err := filepath.Abs(given)
		if err == nil {
			_, err = os.Stat(path)
		}
		return path, err
	}
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return "", fmt.Errorf("find rdmarun's own folder: %w", err)
	}
	folder := filepath.Dir(self)
	for _, path := range []string{
		filepath.Join(folder, softLibrary), filepath.Join(folder, "..", "lib", "rdmarun", softLibrary),
	} {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf(
		"%s is not beside %s: \"make build\" makes it there, or name it with --library", softLibrary, self,
	)
}

// findProgram finds a program as a shell would, and refuses one that no library can be preloaded into: the
// dynamic linker ignores LD_PRELOAD for set-user-ID programs and does not run for static ones, so both would
// silently run without the soft provider.
func findProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return "", withExit(exitNoProgram, fmt.Errorf("%s: no such program", name))
	}
	if err != nil {
		return "", withExit(exitNotRunnable, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", withExit(exitNotRunnable, err)
	}
	if info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		return "", withExit(
			exitNotRunnable,
			fmt.Errorf(
				"%s is set-user-ID or set-group-ID, and nothing can be preloaded into such a program: run a copy "+
					"without that bit",
				path,
			),
		)
	}
	if isStatic(path) {
		return "", withExit(
			exitNotRunnable,
			fmt.Errorf("%s is statically linked, and nothing can be preloaded into it: link it dynamically", path),
		)
	}
	return path, nil
}

// isStatic reports whether a file is an ELF program without an interpreter.  Scripts are not: theirs is found
// by the kernel.
func isStatic(path string) bool {
	file, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	return !slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
}
