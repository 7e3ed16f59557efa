package program

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"

	"rdmarun/rdmacore"
)

// Library is the file name of the soft provider as a library; "make build" puts it into the folder of the binary.
const Library = "librdmarun-soft.so"

// traceLibrary is the file name of the library that records calls, which is in the same folder.
const traceLibrary = "librdmarun-trace.so"

// Soft is the embedded provider that is preloaded into a program.
type Soft struct {
	// Library is what FindLibrary returned.
	Library string
	// Trace is the library that records calls, in front of Library; "": none.
	Trace string
	// Seed is that of random numbers; nil: another one each time.
	Seed *uint64
	// Link and Fabric say which programs connect to each other.
	Link, Fabric string
	// Legal has it make legal choices.
	Legal rdmacore.Legal
	// Shared shares the fabric with every user of the host.
	Shared bool
	// Quiet leaves out reports of dropped packets on standard error.
	Quiet bool
	// CapturePath is the absolute path of the capture; "": Device.Capture, if anything, takes the packets.  Each
	// process has a file of its own: the one with the number Process writes this file, and others have their number
	// before its suffix.
	CapturePath string
	// SnapLength is how many bytes the capture keeps of each packet; 0: all.
	SnapLength int
	// Process is the number of the process that the program will be; 0: it is not known.
	Process int

	control, capture string // the sockets of Device; "": there is none
}

// Environment returns env with what the preloaded library reads.  Settings of an outer provider do not reach it.
func (s *Soft) Environment(env map[string]string) map[string]string {
	env = maps.Clone(env)
	if env == nil {
		env = map[string]string{}
	}
	// In front, as if the provider's library were the system's. A sanitizer must be first, and a library that
	// wraps functions of the two libraries must wrap this one.
	library := s.Library
	if s.Trace != "" {
		library = s.Trace + ":" + library
	}
	Preload(env, library)
	capture := s.capture
	if s.CapturePath != "" {
		capture = fmt.Sprintf("%d:%s", s.Process, s.CapturePath)
	}
	env["RDMARUN_EXEC_LINK"] = s.Link
	env["RDMARUN_EXEC_FABRIC"] = s.Fabric
	for _, optional := range []struct {
		name, value string
		set         bool
	}{
		{"RDMARUN_EXEC_SEED", strconv.FormatUint(value(s.Seed), 10), s.Seed != nil},
		{"RDMARUN_EXEC_LEGAL", legalText(s.Legal), s.Legal.Choices != 0},
		{"RDMARUN_EXEC_SHARED", "1", s.Shared},
		{"RDMARUN_EXEC_QUIET", "1", s.Quiet},
		{"RDMARUN_EXEC_CONTROL", s.control, s.control != ""},
		{"RDMARUN_EXEC_CAPTURE", capture, capture != ""},
		{"RDMARUN_EXEC_CAPTURE_SNAPLEN", strconv.Itoa(s.SnapLength), s.CapturePath != ""},
	} {
		delete(env, optional.name)
		if optional.set {
			env[optional.name] = optional.value
		}
	}
	return env
}

// Preload adds a library to those that the dynamic linker loads first. It comes behind others.
func Preload(env map[string]string, library string) {
	if others := env["LD_PRELOAD"]; others != "" {
		library = others + ":" + library
	}
	env["LD_PRELOAD"] = library
}

// legalText is what the library reads: SEED:CHOICES, and after another colon NUMBER=RATE with commas between them.
func legalText(legal rdmacore.Legal) string {
	text, separator := fmt.Sprintf("%d:%d", legal.Seed, legal.Choices), ":"
	for i, rate := range legal.Rates {
		if rate != 0 {
			text += fmt.Sprintf("%s%d=%d", separator, i, rate)
			separator = ","
		}
	}
	return text
}

func value(number *uint64) uint64 {
	if number == nil {
		return 0
	}
	return *number
}

// FindLibrary finds the library that is preloaded. It is a given one, the one in the folder of the binary, or the one
// in ../lib/rdmarun, where a package puts libraries.
func FindLibrary(given string) (string, error) {
	if given != "" {
		path, err := filepath.Abs(given)
		if err == nil {
			_, err = os.Stat(path)
		}
		return path, err
	}
	return findLibrary(Library, "run make build, or pass --library")
}

// FindTraceLibrary finds the library that records calls: next to a given one of soft, or in the same places.
func FindTraceLibrary(soft string) (string, error) {
	if soft == "" {
		return findLibrary(traceLibrary, "run make build")
	}
	path, err := filepath.Abs(filepath.Join(filepath.Dir(soft), traceLibrary))
	if err == nil {
		_, err = os.Stat(path)
	}
	return path, err
}

func findLibrary(name, hint string) (string, error) {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return "", fmt.Errorf("find rdmarun's own folder: %w", err)
	}
	folder := filepath.Dir(self)
	for _, path := range []string{filepath.Join(folder, name), filepath.Join(folder, "..", "lib", "rdmarun", name)} {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s not found next to %s: %s", name, self, hint)
}
