//! The examples of guests/languages in Rust: EXAMPLE server PORT, or EXAMPLE client PORT ADDRESS COUNT.

#[path = "../../../sdk/rust/mod.rs"]
mod rdma;

mod kv;
mod negotiate;
mod pingpong;

use rdma::{sys, Ep, Error, EventChannel, Listener, Pd, QpOptions, Result};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

const WAIT_LIMIT: Option<Duration> = Some(Duration::from_secs(10));
const QUEUES: QpOptions = QpOptions { sends: 4, receives: 4 };

/// What the command line says.
pub struct Options {
    port: u16,
    /// Of the server; none is given to it.
    address: Option<IpAddr>,
    count: u32,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Err(error) = run(&args) {
        eprintln!("{}: {}", args.join(" "), error);
        std::process::exit(1);
    }
}

fn run(args: &[String]) -> Result<()> {
    let word = |at: usize| args.get(at).map_or("", String::as_str);
    let options = Options {
        port: word(2).parse().map_err(|_| wrong("the third argument is a port"))?,
        address: word(3).parse().ok(),
        count: word(4).parse().unwrap_or(100),
    };
    match (word(0), word(1)) {
        ("pingpong", "server") => pingpong::serve(&options),
        ("pingpong", "client") => pingpong::ask(&options),
        ("kv", "server") => kv::serve(&options),
        ("kv", "client") => kv::ask(&options),
        ("negotiate", "server") => negotiate::serve(&options),
        ("negotiate", "client") => negotiate::ask(&options),
        _ => Err(wrong("pingpong, kv or negotiate; server or client")),
    }
}

/// A difference from what is expected.
fn wrong(what: &str) -> Error {
    Error { function: "example", errno: 0, text: what.into() }
}

fn must(holds: bool, what: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(wrong(what)) }
}

impl Options {
    fn listen(&self, pd: &Pd) -> Result<Listener> {
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, self.port));
        EventChannel::new()?.listen(any, pd, QUEUES, 4)
    }

    fn dial(&self, pd: &Pd) -> Result<Ep> {
        let address = self.address.ok_or_else(|| wrong("the client is told the server's address"))?;
        EventChannel::new()?.dial(SocketAddr::from((address, self.port)), pd, QUEUES)
    }
}

/// Parameters of a connection with one RDMA READ at once.
fn param() -> sys::ConnParam {
    sys::ConnParam { responder_resources: 1, initiator_depth: 1, retry_count: 7, rnr_retry_count: 7, ..Default::default() }
}

/// The client's end of it.
fn hang_up(ep: &Ep) -> Result<()> {
    ep.disconnect()?;
    ep.expect(sys::EVENT_DISCONNECTED, WAIT_LIMIT)?;
    Ok(())
}

/// The server's.
fn hung_up(ep: &Ep) -> Result<()> {
    ep.expect(sys::EVENT_DISCONNECTED, WAIT_LIMIT)?;
    ep.disconnect()
}

/// A number as it is in a message: four bytes, the lowest first.
fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
