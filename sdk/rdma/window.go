package rdma

// Window is a memory window: a key of its own to a part of a region.
type Window struct{ Handle Handle }

// AllocMW allocates a window, bound to nothing.  Of type 1 it is good for every QP of the domain, of type 2 for the one
// that binds it.
func (pd *PD) AllocMW(windowType int) (*Window, error) {
	h, err := handle("alloc_mw", abiAllocMW(pd.Handle, uint32(windowType)))
	if err != nil {
		return nil, err
	}
	return &Window{h}, nil
}

// BindMW posts a request to bind a window to a part of a region, and writes the new key to bind.RKey. The key is valid
// once the request has completed.
func (q *QP) BindMW(w *Window, bind *MWBind) error {
	return check("bind_mw", abiBindMW(q.Handle, w.Handle, bind))
}

// Dealloc frees the window; its key ends.
func (w *Window) Dealloc() error { return check("dealloc_mw", abiDeallocMW(w.Handle)) }
