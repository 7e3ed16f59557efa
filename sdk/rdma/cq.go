package rdma

import (
	"time"
	"unsafe"
)

// CQ is a completion queue.
type CQ struct{ Handle Handle }

// CreateCQ makes a completion queue on the default device, for QPs that share one.
func CreateCQ(entries int) (*CQ, error) { return createCQ(0, entries) }

func createCQ(place Handle, entries int) (*CQ, error) {
	h, err := handle("create_cq", abiCreateCQ(place, uint32(entries)))
	if err != nil {
		return nil, err
	}
	return &CQ{h}, nil
}

// CreateCQEx makes a completion queue on the default device, with these fields and time stamps in its completions.
// EOPNOTSUPP where the device has none of them.
func CreateCQEx(entries int, fields WCFields) (*CQ, error) {
	h, err := handle("create_cq_ex", abiCreateCQEx(0, uint32(entries), fields))
	if err != nil {
		return nil, err
	}
	return &CQ{h}, nil
}

// PollTimestamps takes up to len(wcs) completions without waiting, with the time when each came; stamps is as long.
func (c *CQ) PollTimestamps(wcs []WC, stamps []Timestamp) (int, error) {
	result := abiPollCQTimestamps(
		c.Handle, unsafe.SliceData(wcs), unsafe.SliceData(stamps), uint32(min(len(wcs), len(stamps))),
	)
	if result < 0 {
		return 0, check("poll_cq_timestamps", result)
	}
	return int(result), nil
}

// WaitTimestamps waits until there is a completion and returns how many it took, with the time of each.
func (c *CQ) WaitTimestamps(wcs []WC, stamps []Timestamp, timeout time.Duration) (int, error) {
	result := abiWaitCQTimestamps(c.Handle, unsafe.SliceData(wcs), unsafe.SliceData(stamps),
		uint32(min(len(wcs), len(stamps))), int64(timeout))
	if result < 0 {
		return 0, check("wait_cq_timestamps", result)
	}
	return int(result), nil
}

// Resize makes room for a number of completions.
func (c *CQ) Resize(entries int) error {
	return check("resize_cq", abiResizeCQ(c.Handle, uint32(entries)))
}

// Moderate asks for an event only after count completions, or that long after the first of them.
func (c *CQ) Moderate(count int, period time.Duration) error {
	return check("moderate_cq", abiModerateCQ(c.Handle, uint32(count), uint32(period.Microseconds())))
}

// Destroy destroys a CQ of CreateCQ or CreateCQEx; EBUSY while a QP uses it.
func (c *CQ) Destroy() error { return check("destroy_cq", abiDestroyCQ(c.Handle)) }

// Poll takes up to len(wcs) completions without waiting.
func (c *CQ) Poll(wcs []WC) (int, error) {
	result := abiPollCQ(c.Handle, unsafe.SliceData(wcs), uint32(len(wcs)))
	if result < 0 {
		return 0, check("poll_cq", result)
	}
	return int(result), nil
}

// Spin polls up to attempts times in native code, until there is a completion.
func (c *CQ) Spin(wcs []WC, attempts int) (int, error) {
	result := abiSpinCQ(c.Handle, unsafe.SliceData(wcs), uint32(len(wcs)), uint32(attempts))
	if result < 0 {
		return 0, check("spin_cq", result)
	}
	return int(result), nil
}

// Wait waits until there is a completion and returns how many it took.
func (c *CQ) Wait(wcs []WC, timeout time.Duration) (int, error) {
	result := abiWaitCQ(c.Handle, unsafe.SliceData(wcs), uint32(len(wcs)), int64(timeout))
	if result < 0 {
		return 0, check("wait_cq", result)
	}
	return int(result), nil
}
