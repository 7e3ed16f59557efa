package program

import "os"

// lineBuffers are where coreutils keeps the library of stdbuf(1): on Debian and Fedora, and on Arch.
var lineBuffers = []string{"/usr/libexec/coreutils/libstdbuf.so", "/usr/lib/coreutils/libstdbuf.so"}

// LineBuffered changes an environment so that programs with C's standard streams write each line when it is complete.
// To a pipe they otherwise write blocks of 4 KiB (setvbuf(3)), so that a line comes long after it was printed.  Without
// coreutils the environment stays as it is.
func LineBuffered(env map[string]string) {
	for _, library := range lineBuffers {
		if _, err := os.Stat(library); err != nil {
			continue
		}
		if others := env["LD_PRELOAD"]; others != "" {
			library = others + ":" + library
		}
		env["LD_PRELOAD"], env["_STDBUF_O"] = library, "L"
		return
	}
}
