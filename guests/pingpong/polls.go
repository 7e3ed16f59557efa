//go:build wasip1

package main

import (
	"errors"

	"rdmarun/sdk/rdma"
)

// emptyPolls polls a queue without completions count times and returns the nanoseconds of each. This is the cost of a
// call from a guest through the host into the core and back.
func (c *connection) emptyPolls(count int) (float64, error) {
	began := rdma.Clock()
	for range count {
		n, err := c.ep.SendCQ.Poll(c.wcs[:])
		if err != nil {
			return 0, err
		}
		if n != 0 {
			return 0, errors.New("a completion came before anything was posted")
		}
	}
	return float64(rdma.Clock()-began) / float64(max(count, 1)), nil
}
