package rdmacore

import (
	"context"
	"strconv"
	"syscall"
)

// The functions of rdma_verbs.h that add something to the verbs they are made of: registration in the id's
// protection domain, requests with the buffers of one region, and waiting for one completion.

// RegMsgs registers memory for messages (rdma_reg_msgs(3)) in the PD of the id: the one of CreateQP, or the
// default of its device.  EINVAL while the id has none.
func (id *ID) RegMsgs(m *Memory, offset, length int) (*MR, error) {
	return id.reg("rdma_reg_msgs", m, offset, length, AccessLocalWrite)
}

// RegRead is RegMsgs for memory that the peer may read (rdma_reg_read(3)).
func (id *ID) RegRead(m *Memory, offset, length int) (*MR, error) {
	return id.reg("rdma_reg_read", m, offset, length, AccessLocalWrite|AccessRemoteRead)
}

// RegWrite is RegMsgs for memory that the peer may write (rdma_reg_write(3)).
func (id *ID) RegWrite(m *Memory, offset, length int) (*MR, error) {
	return id.reg("rdma_reg_write", m, offset, length, AccessLocalWrite|AccessRemoteWrite)
}

func (id *ID) reg(op string, m *Memory, offset, length int, access Access) (*MR, error) {
	if !id.open() {
		return nil, closed(op, "id")
	}
	pd := id.PD()
	if pd == nil {
		return nil, fail(op, syscall.EINVAL, "the id has no protection domain yet; resolve or bind its address first")
	}
	return pd.RegMR(m, offset, length, access)
}

// Buffer is a range of a memory region.
type Buffer struct {
	MR             *MR
	Offset, Length int
}

// sge checks what rdma_verbs.h asserts or follows a NULL pointer for.
func (b Buffer) sge(op string) (SGE, error) {
	switch {
	case b.MR == nil || b.MR.c == nil:
		return SGE{}, closed(op, "MR")
	case b.Offset < 0 || b.Length < 0 || b.Offset > b.MR.Length() || b.Length > b.MR.Length()-b.Offset:
		return SGE{}, fail(op, syscall.EFAULT, "%d bytes at %d do not lie in a region of %d", b.Length,
			b.Offset, b.MR.Length())
	}
	return SGE{Address: b.MR.Address() + uint64(b.Offset), Length: uint32(b.Length), LKey: b.MR.LKey()}, nil
}

// Remote is memory of the peer.
type Remote struct {
	Address uint64
	RKey    uint32
}

// PostRecv posts a receive with one buffer (rdma_post_recv(3)).
func (id *ID) PostRecv(wrID uint64, buffer Buffer) error {
	sge, err := buffer.sge("rdma_post_recv")
	if err != nil {
		return err
	}
	return id.PostRecvv(wrID, []SGE{sge})
}

// PostRecvv posts a receive (rdma_post_recvv(3)), to the SRQ of the id if it has one.
func (id *ID) PostRecvv(wrID uint64, sges []SGE) error {
	wrs := []RecvWR{{WRID: wrID, NumSGE: uint32(len(sges))}}
	if srq := id.SRQ(); srq != nil {
		_, err := srq.PostRecv(wrs, sges)
		return err
	}
	qp, err := id.posting("rdma_post_recvv")
	if err != nil {
		return err
	}
	_, err = qp.PostRecv(wrs, sges)
	return err
}

// PostSend sends one buffer (rdma_post_send(3)).
func (id *ID) PostSend(wrID uint64, buffer Buffer, flags SendFlags) error {
	return id.postBuffer("rdma_post_send", wrID, OpSend, buffer, flags, Remote{})
}

// PostSendv sends (rdma_post_sendv(3)).
func (id *ID) PostSendv(wrID uint64, sges []SGE, flags SendFlags) error {
	return id.postOne("rdma_post_sendv", wrID, OpSend, sges, flags, Remote{})
}

// PostRead reads the peer's memory into one buffer (rdma_post_read(3)).
func (id *ID) PostRead(wrID uint64, buffer Buffer, flags SendFlags, from Remote) error {
	return id.postBuffer("rdma_post_read", wrID, OpRDMARead, buffer, flags, from)
}

// PostReadv reads the peer's memory (rdma_post_readv(3)).
func (id *ID) PostReadv(wrID uint64, sges []SGE, flags SendFlags, from Remote) error {
	return id.postOne("rdma_post_readv", wrID, OpRDMARead, sges, flags, from)
}

// PostWrite writes one buffer to the peer's memory (rdma_post_write(3)).
func (id *ID) PostWrite(wrID uint64, buffer Buffer, flags SendFlags, to Remote) error {
	return id.postBuffer("rdma_post_write", wrID, OpRDMAWrite, buffer, flags, to)
}

// PostWritev writes to the peer's memory (rdma_post_writev(3)).
func (id *ID) PostWritev(wrID uint64, sges []SGE, flags SendFlags, to Remote) error {
	return id.postOne("rdma_post_writev", wrID, OpRDMAWrite, sges, flags, to)
}

func (id *ID) postBuffer(op string, wrID uint64, code Opcode, buffer Buffer, flags SendFlags, remote Remote) error {
	sge, err := buffer.sge(op)
	if err != nil {
		return err
	}
	return id.postOne(op, wrID, code, []SGE{sge}, flags, remote)
}

func (id *ID) postOne(op string, wrID uint64, code Opcode, sges []SGE, flags SendFlags, remote Remote) error {
	qp, err := id.posting(op)
	if err != nil {
		return err
	}
	return id.postTo(qp, SendWR{WRID: wrID, Opcode: code, Flags: flags, NumSGE: uint32(len(sges)),
		RemoteAddress: remote.Address, RKey: remote.RKey}, sges)
}

// PostUDSend sends one buffer as a datagram (rdma_post_ud_send(3)), with the qkey of all datagram ids.
func (id *ID) PostUDSend(wrID uint64, buffer Buffer, flags SendFlags, to *AH, remoteQPN uint32) error {
	const op = "rdma_post_ud_send"
	qp, err := id.posting(op)
	if err != nil {
		return err
	}
	sge, err := buffer.sge(op)
	switch {
	case err != nil:
		return err
	case to.Number() == 0:
		return closed(op, "AH")
	case to.pd.device.provider != id.channel.provider:
		return foreign(op, "AH", to.pd.device.provider, id.channel.provider)
	}
	return id.postTo(qp, SendWR{WRID: wrID, Opcode: OpSend, Flags: flags, NumSGE: 1, AH: to.number,
		RemoteQPN: remoteQPN, RemoteQKey: UDPQKey}, []SGE{sge})
}

func (id *ID) postTo(qp *QP, wr SendWR, sges []SGE) error {
	_, err := qp.PostSend([]SendWR{wr}, sges)
	if err == nil && wr.Flags&SendSignaled == 0 && !qp.attr.SignalAll {
		id.unsignaled.Add(1)
	}
	return err
}

func (id *ID) posting(op string) (*QP, error) {
	switch {
	case !id.open():
		return nil, closed(op, "id")
	case id.qp == nil:
		return nil, fail(op, syscall.EINVAL, "the id has no QP")
	}
	return id.qp, nil
}

// GetSendComp waits for one completion of a send request (rdma_get_send_comp(3)), asleep.  Its status is the
// caller's to look at.  EINVAL for a QP with a CQ of the caller's, which has no channel of the id's.  The
// error wraps ctx.Err() when ctx ends first, and says when requests were posted that have no completion.
func (id *ID) GetSendComp(ctx context.Context) (WC, error) {
	return id.getComp(ctx, "rdma_get_send_comp", id.SendCQ())
}

// GetRecvComp is GetSendComp for receives (rdma_get_recv_comp(3)).
func (id *ID) GetRecvComp(ctx context.Context) (WC, error) {
	return id.getComp(ctx, "rdma_get_recv_comp", id.RecvCQ())
}

func (id *ID) getComp(ctx context.Context, op string, cq *CQ) (WC, error) {
	if _, err := id.posting(op); err != nil {
		return WC{}, err
	}
	if cq.id != id {
		return WC{}, fail(op, syscall.EINVAL, "the CQ is not the id's own; poll it, or wait for its event")
	}
	var wcs [1]WC
	for {
		if n, err := cq.Poll(wcs[:]); n != 0 || err != nil {
			return wcs[0], err
		}
		if err := cq.RequestNotify(false); err != nil {
			return WC{}, err
		}
		if n, err := cq.Poll(wcs[:]); n != 0 || err != nil {
			return wcs[0], err
		}
		if err := cq.WaitEvent(ctx); err != nil {
			return WC{}, id.nothingCame(ctx, op, cq, err)
		}
	}
}

// nothingCame names what rdma_get_send_comp(3) would wait for without an end.
func (id *ID) nothingCame(ctx context.Context, op string, cq *CQ, err error) error {
	if ctx.Err() == nil {
		return err
	}
	what := "a completion"
	if count := id.unsignaled.Load(); count != 0 && cq == id.SendCQ() {
		what = "a completion (requests posted without SEND_SIGNALED, which have none unless they fail: " +
			strconv.FormatInt(count, 10) + ")"
	}
	return cancelled(ctx, op, what)
}
