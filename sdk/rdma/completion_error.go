package rdma

import "strconv"

// CompletionError is a work request that did not succeed.
type CompletionError struct {
	WRID   uint64
	Status WCStatus
}

func (e *CompletionError) Error() string {
	return "work request " + strconv.FormatUint(e.WRID, 10) + " ended with " + e.Status.String()
}

// Err is nil for a completion with success, else a *CompletionError.
func (wc *WC) Err() error {
	if wc.Status == WCSuccess {
		return nil
	}
	return &CompletionError{wc.WRID, wc.Status}
}
