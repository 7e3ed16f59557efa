//! Work requests and their completions.

use super::error::{check, Error, Result};
use super::host::nanoseconds;
use super::memory::{Buffer, Memory};
use super::sys;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
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

/// One queue of a QP, with the memory that is posted there, and the CQ that tells of it.
pub(crate) struct Queue {
    qp: sys::Handle,
    cq: sys::Handle,
    posted: u64,
    flying: HashMap<u64, Memory>,
}

impl Queue {
    pub(crate) fn new(qp: sys::Handle, cq: sys::Handle) -> Queue {
        Queue { qp, cq, posted: 0, flying: HashMap::new() }
    }

    pub(crate) fn send(&mut self, op: Op, memory: Memory, range: Range<usize>) -> std::result::Result<u64, PostError> {
        let (mut wr, sge) = (op.request(), memory.sge(&range));
        wr.wr_id = self.posted;
        let result = unsafe { sys::post_send(self.qp, &wr, 1, &sge, 1, std::ptr::null_mut()) };
        self.keep(check("post_send", result), memory)
    }

    /// Posts, and polls a queue - this one's or another's CQ - in the same call of the host.
    pub(crate) fn send_spin(
        &mut self, op: Op, memory: Memory, range: Range<usize>, cq: sys::Handle, attempts: u32,
    ) -> std::result::Result<Option<sys::Wc>, PostError> {
        let (mut wr, sge, mut wc) = (op.request(), memory.sge(&range), sys::Wc::default());
        wr.wr_id = self.posted;
        let posted = std::ptr::null_mut();
        let result = unsafe { sys::post_send_spin(self.qp, &wr, 1, &sge, 1, posted, cq, &mut wc, 1, attempts) };
        self.keep(check("post_send_spin", result), memory)?;
        Ok(if result > 0 { Some(wc) } else { None })
    }

    pub(crate) fn cq(&self) -> sys::Handle {
        self.cq
    }

    pub(crate) fn recv(&mut self, memory: Memory, range: Range<usize>) -> std::result::Result<u64, PostError> {
        let (wr, sge) = (sys::RecvWr { wr_id: self.posted, num_sge: 1, ..Default::default() }, memory.sge(&range));
        let result = unsafe { sys::post_recv(self.qp, &wr, 1, &sge, 1, std::ptr::null_mut()) };
        self.keep(check("post_recv", result), memory)
    }

    fn keep(&mut self, posted: Result<u32>, memory: Memory) -> std::result::Result<u64, PostError> {
        if let Err(error) = posted {
            return Err(PostError { error, memory });
        }
        let id = self.posted;
        self.posted += 1;
        self.flying.insert(id, memory);
        Ok(id)
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
        match self.flying.remove(&wc.wr_id) {
            Some(memory) => Ok(Completion { wc, memory }),
            None => Err(Error::of("completion", format!("no work request {} is posted", wc.wr_id))),
        }
    }
}
