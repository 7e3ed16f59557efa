// Command rdmarun runs RDMA scenarios and WebAssembly guests against an embedded RDMA provider, a
// kernel soft-RoCE or soft-iWARP device, or a real HCA.
package main

import (
	"os"
	"syscall"

	"rdmarun/host/guest"
	"rdmarun/host/program"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == guest.CompilerArgument {
		// Not os.Exit, with which the race detector sleeps a second in a process without an environment.
		syscall.Exit(guest.CompilerMain(nil))
	}
	if len(os.Args) == 2 && os.Args[1] == program.SupervisorArgument {
		syscall.Exit(program.SupervisorMain())
	}
	a := processApp()
	a.catchNativeCrashes()
	os.Exit(int(a.run()))
}
