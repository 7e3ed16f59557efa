//! The host itself: its version, its clock, its log, and the other roles of the run.

use super::error::{check, Error, Result};
use super::sys;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::time::Duration;

/// A timeout as the ABI has it.
pub(crate) fn nanoseconds(timeout: Option<Duration>) -> i64 {
    match timeout {
        None => -1,
        Some(time) => i64::try_from(time.as_nanos()).unwrap_or(i64::MAX),
    }
}

/// The version of the ABI that the host has, major << 16 | minor.
pub fn host_version() -> u32 {
    unsafe { sys::abi_version() as u32 }
}

/// Whether the host has a function of that name for this guest.
pub fn has_function(name: &str) -> bool {
    unsafe { sys::has_function(name.as_ptr(), name.len() as u32) == 1 }
}

/// The clock of the run.
pub fn clock() -> Duration {
    let mut now = 0;
    unsafe { sys::clock_ns(&mut now) };
    Duration::from_nanos(now)
}

/// Lets others run that wait for this processor; who spins calls it now and then.
pub fn yield_now() {
    unsafe { sys::yield_() };
}

/// Writes a line to the log of the run; level is `sys::LOG_INFO` or another.
pub fn log(level: u32, line: &str) -> Result<()> {
    check("log", unsafe { sys::log(level, line.as_ptr(), line.len() as u32) })?;
    Ok(())
}

/// Waits until every party of the barrier has come to it.
pub fn barrier(name: &str, timeout: Option<Duration>) -> Result<()> {
    check("barrier", unsafe { sys::barrier(name.as_ptr(), name.len() as u32, nanoseconds(timeout)) })?;
    Ok(())
}

/// Whether the run has asked this guest to end.
pub fn stop_requested() -> bool {
    unsafe { sys::stop_requested() == 1 }
}

/// An address by which peers reach the default device.
pub fn device_address() -> Result<IpAddr> {
    let mut address = sys::Address::default();
    check("device_address", unsafe { sys::device_address(0, &mut address) })?;
    address.socket_address().map(|found| found.ip()).ok_or_else(|| Error::of("device_address", "no address of IP".into()))
}

const INET: u16 = 2;
const INET6: u16 = 10;

impl From<SocketAddr> for sys::Address {
    fn from(address: SocketAddr) -> sys::Address {
        let mut out = sys::Address { port: address.port(), ..Default::default() };
        match address {
            SocketAddr::V4(v4) => {
                out.family = INET;
                out.ip[..4].copy_from_slice(&v4.ip().octets());
            }
            SocketAddr::V6(v6) => {
                out.family = INET6;
                out.scope_id = v6.scope_id();
                out.ip = v6.ip().octets();
            }
        }
        out
    }
}

impl sys::Address {
    /// None without an address.
    pub fn socket_address(&self) -> Option<SocketAddr> {
        match self.family {
            INET => Some((Ipv4Addr::new(self.ip[0], self.ip[1], self.ip[2], self.ip[3]), self.port).into()),
            INET6 => Some(SocketAddrV6::new(Ipv6Addr::from(self.ip), self.port, 0, self.scope_id).into()),
            _ => None,
        }
    }
}
