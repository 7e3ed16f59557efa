// Command rdmarun runs RDMA scenarios and WebAssembly guests against an embedded RDMA provider, a
// kernel soft-RoCE or soft-iWARP device, or a real HCA.
package main

import "os"

func main() {
	a := processApp()
	a.catchNativeCrashes()
	os.Exit(int(a.run()))
}
