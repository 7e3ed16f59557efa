//! NAME, a guest of rdmarun: a server that takes one connection and answers its message in capitals.  NAME.yaml brings the
//! client.

mod rdma;

use rdma::{sys, EventChannel, Op, Pd, QpOptions};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

const PORT: u16 = 7471;
const LONGEST: usize = 1024; // bytes of a message
const WAIT_LIMIT: Option<Duration> = Some(Duration::from_secs(10));

fn main() {
    if let Err(error) = serve() {
        eprintln!("NAME: {}", error);
        std::process::exit(1);
    }
}

/// Listens, and serves the first who comes.
fn serve() -> rdma::Result<()> {
    let (channel, pd) = (EventChannel::new()?, Pd::alloc()?);
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT));
    let listener = channel.listen(any, &pd, QpOptions { sends: 1, receives: 1 }, 1)?;
    let mut client = listener.request(None)?.ep;

    // The client may send as soon as it is accepted, so the receive is posted before.
    client.post_recv(pd.buffer(LONGEST)?, 0..LONGEST)?;
    client.accept(None)?;
    client.expect(sys::EVENT_ESTABLISHED, WAIT_LIMIT)?;

    let received = client.wait_recv(WAIT_LIMIT)?.ok()?;
    let length = received.length();
    let mut message = received.buffer()?;
    println!("NAME: {}", String::from_utf8_lossy(&message[..length]));
    message[..length].make_ascii_uppercase();
    client.post_send(Op::Send, message, 0..length)?;
    client.wait_send(WAIT_LIMIT)?.ok()?;

    client.expect(sys::EVENT_DISCONNECTED, WAIT_LIMIT)?;
    client.disconnect() // the client's own waits for it
}
