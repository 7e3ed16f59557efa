//! Waiting for several things at once.

use super::error::{check, Result};
use super::host::nanoseconds;
use super::sys;
use std::time::Duration;

impl sys::PollEntry {
    /// Waits for the events (`sys::POLL_IN`...) of what has the handle: a channel, a listener, an endpoint, a CQ.
    pub fn new(handle: sys::Handle, events: u32) -> sys::PollEntry {
        sys::PollEntry { handle, events, ..Default::default() }
    }
}

/// Waits until there is one of several things, and takes none of them.  Returns how many entries have `revents`; 0 when the time
/// is over.
pub fn poll(entries: &mut [sys::PollEntry], timeout: Option<Duration>) -> Result<usize> {
    let result = unsafe { sys::poll_set(entries.as_mut_ptr(), entries.len() as u32, nanoseconds(timeout)) };
    Ok(check("poll_set", result)? as usize)
}
