package environment

import (
	"io/fs"
	"slices"
	"strings"
)

// Machine lists facts of the machine under names of one word: kernel, cpu (the model), governor (of the processors'
// frequency).  files is the root of the file system; what it does not have is left out.
func Machine(files fs.FS) map[string]string {
	facts := make(map[string]string)
	for name, value := range map[string]string{
		"kernel": read(files, "proc/sys/kernel/osrelease"), "cpu": processor(files), "governor": governors(files),
	} {
		if value != "" {
			facts[name] = value
		}
	}
	return facts
}

// processor is the model of the first processor: "model name" on x86, "CPU part" and the like elsewhere.
func processor(files fs.FS) string {
	known := make(map[string]string)
	for line := range strings.Lines(read(files, "proc/cpuinfo")) {
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); ok && known[name] == "" {
			known[name] = strings.TrimSpace(value)
		}
	}
	if known["model name"] == "" && known["CPU part"] != "" {
		return "implementer " + known["CPU implementer"] + " part " + known["CPU part"]
	}
	return known["model name"]
}

// governors are those of all processors, each named once; most machines have one, and virtual ones none.
func governors(files fs.FS) string {
	paths, err := fs.Glob(files, "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor")
	if err != nil {
		return ""
	}
	var names []string
	for _, path := range paths {
		if name := read(files, path); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " ")
}
