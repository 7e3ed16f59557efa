//! Shared receive queues.

use super::error::{check, Result};
use super::memory::{Memory, Pd};
use super::sys;
use super::work::{Flying, PostError};
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

/// A shared receive queue: its receives go to whichever of its QPs gets the next message.  Clones are the same.
#[derive(Clone)]
pub struct Srq(pub(crate) Rc<SrqHandle>);

pub(crate) struct SrqHandle {
    pub(crate) handle: sys::Handle,
    // Dropped after the queue is destroyed: posted memory, then its domain.
    pub(crate) flying: Rc<RefCell<Flying>>,
    _pd: Pd,
}

impl Drop for SrqHandle {
    fn drop(&mut self) {
        unsafe { sys::destroy_srq(self.handle) };
    }
}

impl Srq {
    /// A queue with room for so many receives.
    pub fn new(pd: &Pd, receives: u32) -> Result<Srq> {
        let attr = sys::SrqAttr { max_wr: receives, max_sge: 1, ..Default::default() };
        let handle = check("create_srq", unsafe { sys::create_srq(pd.handle(), &attr) })?;
        Ok(Srq(Rc::new(SrqHandle { handle, flying: Default::default(), _pd: pd.clone() })))
    }

    /// For `call::query_srq`, `call::arm_srq` and `call::resize_srq`.
    pub fn handle(&self) -> sys::Handle {
        self.0.handle
    }

    /// Posts a receive, and gives its number.  `wait_recv` of the endpoint that gets the message gives the memory back.
    pub fn post_recv(&self, memory: impl Into<Memory>, range: Range<usize>) -> std::result::Result<u64, PostError> {
        Flying::recv(&self.0.flying, memory.into(), range, |wr, sge| {
            check("post_srq_recv", unsafe { sys::post_srq_recv(self.0.handle, wr, 1, sge, 1, std::ptr::null_mut()) })
        })
    }
}
