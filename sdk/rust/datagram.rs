//! Where datagrams go.

use super::error::{check, Result};
use super::memory::Pd;
use super::sys;

/// How much of a datagram's receive is the header of the network, in front of the message.
pub const GRH: usize = 40;
/// The queue key of QPs of `EventChannel::datagrams`.
pub const UDP_QKEY: u32 = 0x01234567;

/// An address handle: a peer or a group, for `Op::Datagram`.
pub struct Route {
    handle: sys::Handle,
    number: u32,
    _pd: Pd, // dropped after the handle
}

impl Drop for Route {
    fn drop(&mut self) {
        unsafe { sys::destroy_ah(self.handle) };
    }
}

impl Route {
    /// The way that `ah` of an event says, for example that of a MULTICAST_JOIN.
    pub fn of(pd: &Pd, attr: &sys::AhAttr) -> Result<Route> {
        let mut ah = sys::Ah::default();
        let handle = check("create_ah", unsafe { sys::create_ah(pd.handle(), attr, &mut ah) })?;
        Ok(Route { handle, number: ah.number, _pd: pd.clone() })
    }

    /// The way back to the sender of a datagram, the QP `wc.src_qp`; header is the beginning of the receive's memory.
    pub fn back(pd: &Pd, wc: &sys::Wc, header: &[u8; GRH]) -> Result<Route> {
        let mut ah = sys::Ah::default();
        let result = unsafe { sys::create_ah_from_wc(pd.handle(), wc, header.as_ptr(), &mut ah) };
        Ok(Route { handle: check("create_ah_from_wc", result)?, number: ah.number, _pd: pd.clone() })
    }

    /// What work requests have.
    pub fn number(&self) -> u32 {
        self.number
    }
}
