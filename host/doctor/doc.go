// Package doctor finds out why RDMA will not work on a machine, and what to type.  It is a list of checks over
// the files of /sys, /proc and /dev, so that tests run them on made-up machines, and a self-test of the
// embedded provider.
package doctor
