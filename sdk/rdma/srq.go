package rdma

import "unsafe"

// SRQ is a shared receive queue: its receives go to whichever of its QPs gets the next message.
type SRQ struct{ Handle Handle }

// CreateSRQ makes a shared receive queue, which QPInitAttr.SRQ names by its Handle.  attr.Limit is ignored: Arm sets
// it.
func (pd *PD) CreateSRQ(attr SRQAttr) (*SRQ, error) {
	attr.StructSize = uint32(unsafe.Sizeof(attr))
	h, err := handle("create_srq", abiCreateSRQ(pd.Handle, &attr))
	if err != nil {
		return nil, err
	}
	return &SRQ{h}, nil
}

// Query returns the sizes that were granted, and the limit while it is armed.
func (s *SRQ) Query() (SRQAttr, error) {
	attr := SRQAttr{StructSize: uint32(unsafe.Sizeof(SRQAttr{}))}
	err := check("query_srq", abiQuerySRQ(s.Handle, &attr))
	return attr, err
}

// Arm asks for one SRQ_LIMIT_REACHED when fewer receives are left; 0 for none.
func (s *SRQ) Arm(limit int) error { return check("arm_srq", abiArmSRQ(s.Handle, uint32(limit))) }

// Resize makes room for a number of receives.
func (s *SRQ) Resize(maxWR int) error {
	return check("resize_srq", abiResizeSRQ(s.Handle, uint32(maxWR)))
}

// PostRecv posts receives, as QP.PostRecv.
func (s *SRQ) PostRecv(wrs []RecvWR, sges []SGE) (posted int, err error) {
	var accepted uint64
	result := abiPostSRQRecv(
		s.Handle, unsafe.SliceData(wrs), uint32(len(wrs)), unsafe.SliceData(sges), uint32(len(sges)), &accepted,
	)
	if result < 0 {
		return int(accepted), check("post_srq_recv", result)
	}
	return int(result), nil
}

// Destroy destroys the queue; EBUSY while QPs use it.
func (s *SRQ) Destroy() error { return check("destroy_srq", abiDestroySRQ(s.Handle)) }
