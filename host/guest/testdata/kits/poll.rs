//! What the safe layer has in addition to one connection: events of any endpoint, and waiting for several things.

#[path = "../../../../sdk/rust/mod.rs"]
mod rdma;

use rdma::{sys, EventChannel, Op, Pd, QpOptions};
use std::net::SocketAddr;
use std::time::Duration;

const TIME: Option<Duration> = Some(Duration::from_secs(10));

fn main() -> rdma::Result<()> {
    let (channel, clients, pd) = (EventChannel::new()?, EventChannel::new()?, Pd::alloc()?);
    let own = rdma::device_address()?;
    let options = QpOptions { sends: 1, receives: 1 };
    let listeners = [
        channel.listen(SocketAddr::from((own, 0)), &pd, options, 1)?,
        channel.listen(SocketAddr::from((own, 0)), &pd, options, 1)?,
    ];
    let mut servers = Vec::new();
    let mut asking = Vec::new();
    for listener in &listeners {
        let client = clients.dial(listener.local_address()?, &pd, options)?;
        client.connect(None)?;
        let event = channel.wait_any(TIME)?;
        let of = listeners.iter().find(|l| l.handle() == event.0.listener).expect("a request of no listener");
        let mut server = of.request_of(event)?.ep;
        server.post_recv(pd.buffer(8)?, 0..8)?;
        server.accept(None)?;
        client.expect(sys::EVENT_ESTABLISHED, TIME)?;
        let event = channel.wait_any(TIME)?;
        assert_eq!((event.0.ep, event.name()), (server.handle(), "ESTABLISHED"));
        servers.push(server);
        asking.push(client);
    }
    let mut entries = vec![sys::PollEntry::new(channel.handle(), sys::POLL_IN)];
    entries.extend(servers.iter().map(|s| sys::PollEntry::new(s.recv_cq(), sys::POLL_IN)));
    assert_eq!(rdma::poll(&mut entries, Some(Duration::ZERO))?, 0);
    asking[1].post_send(Op::Send, pd.buffer(8)?, 0..8)?;
    assert_eq!(rdma::poll(&mut entries, TIME)?, 1);
    assert_eq!(entries.iter().map(|e| e.revents).collect::<Vec<_>>(), [0, 0, sys::POLL_IN]);
    assert_eq!(servers[1].wait_recv(TIME)?.ok()?.length(), 8);
    println!("all of them");
    Ok(())
}
