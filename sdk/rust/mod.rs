// The SDK of rdmarun for guests in Rust; "rdmarun sdk rust DIR" brings it up to date.

//! librdmacm and libibverbs as a WebAssembly guest of rdmarun sees them, safely.
//!
//! * `sys` is the ABI itself, and `call` each of its functions with types of Rust, both made of rdmarun's table.  The rest is
//!   by hand and calls them.
//! * An `Error` has the function, Linux's errno (`sys::EINVAL`...) and the host's sentence.
//! * What a value stands for goes with it: an `Ep` destroys its QP and CQs before the memory that is posted there, memory
//!   before its protection domain, endpoints before their channel.
//! * A work request owns its memory until its completion gives it back: `post_recv(buffer, ..)` takes a `Buffer`, `wait_recv`
//!   returns it.  A `Region` is for what peers reach by themselves; it is shared, and copied from and to.
//! * A guest has one thread: what waits stops all of it.  `None` waits as long as the guest may run.
//!
//! No crates are needed; Rust 1.63 will do.  `mod rdma;` in any edition, or the folder as a crate: its Cargo.toml.

#![allow(dead_code, unused_imports)]

pub mod call;
pub mod sys;

mod cm;
mod datagram;
mod error;
mod host;
mod memory;
mod poll;
mod srq;
mod window;
mod work;

pub use cm::{Ep, Event, EventChannel, Listener, QpOptions, Request};
pub use datagram::{Route, GRH, UDP_QKEY};
pub use error::{Error, Result};
pub use host::{barrier, clock, device_address, has_function, host_version, log, stop_requested, yield_now};
pub use memory::{Buffer, Memory, Pd, Region};
pub use poll::poll;
pub use srq::Srq;
pub use window::Window;
pub use work::{Completion, Op, PostError};
