package main

import (
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// environment is what a comparison of two runs needs to know of where they ran.
func (a *app) environment() map[string]string {
	build := buildVersion()
	facts := map[string]string{
		"version": build.Version, "arch": build.Arch, "cpus": strconv.Itoa(runtime.NumCPU()),
	}
	if build.Commit != "" {
		facts["commit"] = build.Commit
	}
	if host, err := os.Hostname(); err == nil {
		facts["host"] = host
	}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		facts["kernel"] = unix.ByteSliceToString(name.Release[:])
	}
	return facts
}
