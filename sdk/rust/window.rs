//! Memory windows.

use super::error::{check, Result};
use super::memory::{Pd, Region};
use super::sys;

/// A memory window: a key of its own to a part of a region.  `Ep::bind` binds it.
pub struct Window {
    pub(crate) handle: sys::Handle,
    pub(crate) rkey: u32,
    pub(crate) region: Option<Region>, // dropped after the window
    _pd: Pd,
}

impl Drop for Window {
    fn drop(&mut self) {
        unsafe { sys::dealloc_mw(self.handle) };
    }
}

impl Window {
    /// A window that is bound to nothing.  Of type 1 it is good for every QP of the domain, of type 2 for the one that binds it.
    pub fn alloc(pd: &Pd, window_type: u32) -> Result<Window> {
        let handle = check("alloc_mw", unsafe { sys::alloc_mw(pd.handle(), window_type) })?;
        Ok(Window { handle, rkey: 0, region: None, _pd: pd.clone() })
    }

    /// What a peer needs in addition to the address, which is the region's.  It is good once the request to bind has
    /// completed.
    pub fn rkey(&self) -> u32 {
        self.rkey
    }
}
