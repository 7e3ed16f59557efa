//! Work requests and their completions.

use super::error::{check, Error, Result};
use super::host::nanoseconds;
use super::memory::{Buffer, Memory};
use super::srq::Srq;
use super::sys;
use super::window::Window;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

/// What a send request does.  Addresses and rkeys are the peer's.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    Send,
    /// The word arrives with the message.
    SendImm(u32),
    Write { address: u64, rkey: u32 },
    /// The peer's receive completes with the word.
    WriteImm { address: u64, rkey: u32, imm: u32 },
    Read { address: u64, rkey: u32 },
    /// The old word comes to the request's memory.
    FetchAdd { address: u64, rkey: u32, add: u64 },
    CompareSwap { address: u64, rkey: u32, compare: u64, swap: u64 },
    /// To the QP of a `Route`.
    Datagram { route: u32, qpn: u32, qkey: u32 },
}

impl Op {
    fn request(self) -> sys::SendWr {
        let wr = sys::SendWr { num_sge: 1, send_flags: sys::SEND_SIGNALED, ..Default::default() };
        match self {
            Op::Send => sys::SendWr { opcode: sys::WR_SEND, ..wr },
            Op::SendImm(imm) => sys::SendWr { opcode: sys::WR_SEND_WITH_IMM, imm_data: imm.to_be(), ..wr },
            Op::Write { address, rkey } => sys::SendWr { opcode: sys::WR_RDMA_WRITE, remote_addr: address, rkey, ..wr },
            Op::WriteImm { address, rkey, imm } => {
                sys::SendWr { opcode: sys::WR_RDMA_WRITE_WITH_IMM, remote_addr: address, rkey, imm_data: imm.to_be(), ..wr }
            }
            Op::Read { address, rkey } => sys::SendWr { opcode: sys::WR_RDMA_READ, remote_addr: address, rkey, ..wr },
            Op::FetchAdd { address, rkey, add } => {
                sys::SendWr { opcode: sys::WR_ATOMIC_FETCH_AND_ADD, remote_addr: address, rkey, compare_add: add, ..wr }
            }
            Op::CompareSwap { address, rkey, compare, swap } => sys::SendWr {
                opcode: sys::WR_ATOMIC_CMP_AND_SWP, remote_addr: address, rkey, compare_add: compare, swap, ..wr
            },
            Op::Datagram { route, qpn, qkey } => {
                sys::SendWr { opcode: sys::WR_SEND, ah: route, remote_qpn: qpn, remote_qkey: qkey, ..wr }
            }
        }
    }
}

/// A work request that was not posted, with the memory that it would have had.
pub struct PostError {
    pub error: Error,
    pub memory: Memory,
}

impl fmt::Debug for PostError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl From<PostError> for Error {
    fn from(failed: PostError) -> Error {
        failed.error
    }
}

/// A work request that ended, with its memory.
pub struct Completion {
    pub wc: sys::Wc,
    pub memory: Memory,
}

impl Completion {
    /// The number that post_send or post_recv gave.
    pub fn id(&self) -> u64 {
        self.wc.wr_id
    }

    /// The completion, if it is a success.
    pub fn ok(self) -> Result<Completion> {
        if self.wc.status == sys::WC_SUCCESS {
            return Ok(self);
        }
        let text = format!("work request {} ended with {}", self.wc.wr_id, sys::wc_status_name(self.wc.status));
        Err(Error::of("completion", text))
    }

    /// The buffer of a success.
    pub fn buffer(self) -> Result<Buffer> {
        self.ok()?.memory.into_buffer()
    }

    /// Bytes received, or read.
    pub fn length(&self) -> usize {
        self.wc.byte_len as usize
    }

    /// The word that came with the message.
    pub fn imm(&self) -> Option<u32> {
        if self.wc.wc_flags & sys::WC_WITH_IMM == 0 {
            return None;
        }
        Some(u32::from_be(self.wc.imm_data))
    }
}

/// The memory that is posted to a queue, by the numbers of its requests.
#[derive(Default)]
pub(crate) struct Flying {
    posted: u64,
    memory: HashMap<u64, Memory>,
}

impl Flying {
    /// Posts a receive by a host function, and keeps its memory.
    pub(crate) fn recv(
        flying: &RefCell<Flying>, memory: Memory, range: Range<usize>, post: impl FnOnce(&sys::RecvWr, &sys::Sge) -> Result<u32>,
    ) -> std::result::Result<u64, PostError> {
        let mut flying = flying.borrow_mut();
        let (wr, sge) = (sys::RecvWr { wr_id: flying.posted, num_sge: 1, ..Default::default() }, memory.sge(&range));
        flying.keep(post(&wr, &sge), memory)
    }

    fn keep(&mut self, posted: Result<u32>, memory: Memory) -> std::result::Result<u64, PostError> {
        if let Err(error) = posted {
            return Err(PostError { error, memory });
        }
        let id = self.posted;
        self.posted += 1;
        self.memory.insert(id, memory);
        Ok(id)
    }
}

/// One queue of a QP, with the memory that is posted there, and the CQ of its completions.
pub(crate) struct Queue {
    qp: sys::Handle,
    cq: sys::Handle,
    flying: Rc<RefCell<Flying>>,
    _srq: Option<Srq>, // destroyed after its QPs
}

impl Queue {
    pub(crate) fn new(qp: sys::Handle, cq: sys::Handle) -> Queue {
        Queue { qp, cq, flying: Default::default(), _srq: None }
    }

    /// The receive queue of a QP that has a shared one.
    pub(crate) fn shared(qp: sys::Handle, cq: sys::Handle, srq: &Srq) -> Queue {
        Queue { qp, cq, flying: srq.0.flying.clone(), _srq: Some(srq.clone()) }
    }

    pub(crate) fn send(&mut self, op: Op, memory: Memory, range: Range<usize>) -> std::result::Result<u64, PostError> {
        let mut flying = self.flying.borrow_mut();
        let (mut wr, sge) = (op.request(), memory.sge(&range));
        wr.wr_id = flying.posted;
        let result = unsafe { sys::post_send(self.qp, &wr, 1, &sge, 1, std::ptr::null_mut()) };
        flying.keep(check("post_send", result), memory)
    }

    /// Posts, and polls a queue - this one's or another's CQ - in the same call of the host.
    pub(crate) fn send_spin(
        &mut self, op: Op, memory: Memory, range: Range<usize>, cq: sys::Handle, attempts: u32,
    ) -> std::result::Result<Option<sys::Wc>, PostError> {
        let mut flying = self.flying.borrow_mut();
        let (mut wr, sge, mut wc) = (op.request(), memory.sge(&range), sys::Wc::default());
        wr.wr_id = flying.posted;
        let posted = std::ptr::null_mut();
        let result = unsafe { sys::post_send_spin(self.qp, &wr, 1, &sge, 1, posted, cq, &mut wc, 1, attempts) };
        flying.keep(check("post_send_spin", result), memory)?;
        Ok(if result > 0 { Some(wc) } else { None })
    }

    /// Posts a receive, and polls the queue's CQ in the same call of the host.
    pub(crate) fn recv_spin(
        &mut self, memory: Memory, range: Range<usize>, attempts: u32,
    ) -> std::result::Result<Option<Completion>, PostError> {
        let (mut wc, mut found) = (sys::Wc::default(), 0);
        let (qp, cq, posted) = (self.qp, self.cq, std::ptr::null_mut());
        Flying::recv(&self.flying, memory, range, |wr, sge| {
            found = check("post_recv_spin", unsafe { sys::post_recv_spin(qp, wr, 1, sge, 1, posted, cq, &mut wc, 1, attempts) })?;
            Ok(found)
        })?;
        Ok(if found > 0 { self.land(wc).ok() } else { None })
    }

    /// Posts a request to bind a window; the memory is that of the region.
    pub(crate) fn bind(&mut self, window: &mut Window, memory: Memory, mut bind: sys::MwBind) -> std::result::Result<u64, PostError> {
        let mut flying = self.flying.borrow_mut();
        bind.wr_id = flying.posted;
        bind.send_flags = sys::SEND_SIGNALED;
        let result = unsafe { sys::bind_mw(self.qp, window.handle, &mut bind) };
        let id = flying.keep(check("bind_mw", result), memory)?;
        window.rkey = bind.rkey;
        Ok(id)
    }

    pub(crate) fn cq(&self) -> sys::Handle {
        self.cq
    }

    pub(crate) fn qp(&self) -> sys::Handle {
        self.qp
    }

    pub(crate) fn recv(&mut self, memory: Memory, range: Range<usize>) -> std::result::Result<u64, PostError> {
        let qp = self.qp;
        Flying::recv(&self.flying, memory, range, |wr, sge| {
            check("post_recv", unsafe { sys::post_recv(qp, wr, 1, sge, 1, std::ptr::null_mut()) })
        })
    }

    /// The next completion, None when there is none yet.
    pub(crate) fn poll(&mut self) -> Result<Option<Completion>> {
        let mut wc = sys::Wc::default();
        match check("poll_cq", unsafe { sys::poll_cq(self.cq, &mut wc, 1) })? {
            0 => Ok(None),
            _ => self.land(wc).map(Some),
        }
    }

    /// The next completion, polled for in native code up to so many times.
    pub(crate) fn spin(&mut self, attempts: u32) -> Result<Option<Completion>> {
        let mut wc = sys::Wc::default();
        match check("spin_cq", unsafe { sys::spin_cq(self.cq, &mut wc, 1, attempts) })? {
            0 => Ok(None),
            _ => self.land(wc).map(Some),
        }
    }

    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> Result<Completion> {
        let mut wc = sys::Wc::default();
        check("wait_cq", unsafe { sys::wait_cq(self.cq, &mut wc, 1, nanoseconds(timeout)) })?;
        self.land(wc)
    }

    pub(crate) fn land(&mut self, wc: sys::Wc) -> Result<Completion> {
        let memory = self.flying.borrow_mut().memory.remove(&wc.wr_id);
        match memory {
            Some(memory) => Ok(Completion { wc, memory }),
            None => Err(Error::of("completion", format!("no work request {} is posted", wc.wr_id))),
        }
    }
}
