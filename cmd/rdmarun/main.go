// Command rdmarun runs RDMA scenarios and WebAssembly guests against an embedded RDMA provider, a
// kernel soft-RoCE or soft-iWARP device, or a real HCA.
package main

import (
	"os"

	"rdmarun/host/guest"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == guest.CompilerArgument {
		os.Exit(guest.CompilerMain(nil))
	}
	a := processApp()
	a.catchNativeCrashes()
	os.Exit(int(a.run()))
}
