package main

import (
	"os"
	"runtime"
	"strconv"

	surroundings "rdmarun/host/scenario/environment"
)

// environment is what a comparison of two runs needs to know of where they ran.
func (a *app) environment() map[string]string {
	build := buildVersion()
	facts := surroundings.Machine(os.DirFS("/"))
	facts["version"], facts["arch"], facts["cpus"] = build.Version, build.Arch, strconv.Itoa(runtime.NumCPU())
	if build.Commit != "" {
		facts["commit"] = build.Commit
	}
	if host, err := os.Hostname(); err == nil {
		facts["host"] = host
	}
	return facts
}
