//! What the safe layer has in addition to reliable connections of one queue each: windows, shared receive queues, datagrams, groups.

#[path = "../../../../sdk/rust/mod.rs"]
mod rdma;

use rdma::{call, sys, Ep, EventChannel, Op, Pd, QpOptions, Route, Srq, Window, GRH, UDP_QKEY};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

const TIME: Option<Duration> = Some(Duration::from_secs(10));
const OPTIONS: QpOptions = QpOptions { sends: 4, receives: 4 };

/// A connection. Its accepting end has a shared receive queue.
fn connect(channel: &EventChannel, pd: &Pd, srq: &Srq, ece: &sys::Ece) -> rdma::Result<(Ep, Ep)> {
    let own = rdma::device_address()?;
    let listener = channel.listen_shared(SocketAddr::from((own, 0)), pd, OPTIONS, 1, srq)?;
    let client = channel.dial(listener.local_address()?, pd, OPTIONS)?;
    let offered = client.set_local_ece(ece).is_ok();
    client.connect(None)?;
    let server = listener.request(TIME)?.ep;
    if offered {
        assert_eq!(server.remote_ece()?.vendor_id, ece.vendor_id);
    }
    server.accept(None)?;
    client.expect(sys::EVENT_ESTABLISHED, TIME)?;
    server.expect(sys::EVENT_ESTABLISHED, TIME)?;
    Ok((client, server))
}

fn windows(pd: &Pd, client: &mut Ep, server: &mut Ep) -> rdma::Result<()> {
    let region = pd.region(64, sys::ACCESS_LOCAL_WRITE | sys::ACCESS_MW_BIND)?;
    let mut window = Window::alloc(pd, 1)?;
    let id = server.bind(&mut window, &region, 32..48, sys::ACCESS_REMOTE_WRITE)?;
    assert_eq!(server.wait_send(TIME)?.ok()?.id(), id);
    let mut buffer = pd.buffer(8)?;
    buffer[0] = 9;
    client.post_send(Op::Write { address: region.address() + 32, rkey: window.rkey() }, buffer, 0..8)?;
    let buffer = client.wait_send(TIME)?.buffer()?;
    assert_eq!(region.load(32), 9);

    let far = pd.region_at(4096, sys::ACCESS_LOCAL_WRITE, 0x70_0000_0000)?;
    assert_eq!(far.address() >> 12, 0x700_0000);
    far.set_access(sys::ACCESS_LOCAL_WRITE | sys::ACCESS_REMOTE_WRITE)?;
    client.post_send(Op::Write { address: far.address() + 8, rkey: far.rkey() }, buffer, 0..8)?;
    client.wait_send(TIME)?.ok()?;
    assert_eq!(far.load(8), 9);
    Ok(())
}

fn datagrams(channel: &EventChannel, pd: &Pd) -> rdma::Result<()> {
    let own = SocketAddr::from((rdma::device_address()?, 0));
    let (mut asks, mut answers) = (channel.datagrams(own, pd, OPTIONS)?, channel.datagrams(own, pd, OPTIONS)?);
    let group = IpAddr::from(Ipv4Addr::new(239, 1, 2, 3));
    asks.join_multicast(group, 5)?;
    let joined = asks.expect(sys::EVENT_MULTICAST_JOIN, TIME)?.0;
    assert_eq!(joined.arg, 5);
    answers.join_multicast(group, 0)?;
    answers.expect(sys::EVENT_MULTICAST_JOIN, TIME)?;
    answers.post_recv(pd.buffer(64)?, 0..64)?;
    asks.post_recv(pd.buffer(64)?, 0..64)?; // a group's message comes to its sender, too
    let mut buffer = pd.buffer(8)?;
    buffer[0] = 6;
    let there = Route::of(pd, &joined.ah)?;
    asks.post_send(Op::Datagram { route: there.number(), qpn: joined.param.qp_num, qkey: joined.qkey }, buffer, 0..8)?;
    asks.wait_send(TIME)?.ok()?;
    asks.leave_multicast(group)?;
    let got = answers.wait_recv(TIME)?.ok()?;
    let (wc, received) = (got.wc, got.buffer()?);
    assert_eq!(received[GRH], 6);

    let header: &[u8; GRH] = received[..GRH].try_into().expect("a header");
    let back = Route::back(pd, &wc, header)?;
    assert_eq!(wc.src_qp, asks.qp_number()?);
    let to_asks = Op::Datagram { route: back.number(), qpn: wc.src_qp, qkey: UDP_QKEY };
    answers.post_send(to_asks, pd.buffer(8)?, 0..8)?;
    asks.wait_recv(TIME)?.ok()?;
    Ok(())
}

/// Functions of `call`, with slices and references.
fn calls(client: &Ep, srq: &Srq) -> rdma::Result<()> {
    let mut attr = sys::SrqAttr::default();
    attr.struct_size = 1 << 20; // is set to the struct's own
    call::query_srq(srq.handle(), &mut attr)?;
    assert!(attr.max_wr >= 4 && attr.struct_size == 16);
    let mut wcs = [sys::Wc::default(); 4];
    assert_eq!(call::poll_cq(client.send_cq(), &mut wcs)?, 0);
    let failed = call::dealloc_mw(12345).unwrap_err();
    assert_eq!((failed.function, failed.name()), ("dealloc_mw", "EBADF"));
    let mut port = sys::PortAttr::default();
    call::query_port(client.handle(), 1, &mut port)?;
    Ok(())
}

fn main() -> rdma::Result<()> {
    let (channel, pd) = (EventChannel::new()?, Pd::alloc()?);
    let srq = Srq::new(&pd, 4)?;
    let first = srq.post_recv(pd.buffer(8)?, 0..8)?;
    let ece = sys::Ece { vendor_id: 0x15b3, options: 1, ..Default::default() };
    let (mut client, mut server) = connect(&channel, &pd, &srq, &ece)?;
    let mut buffer = pd.buffer(8)?;
    buffer[0] = 3;
    client.post_send(Op::Send, buffer, 0..8)?;
    client.wait_send(TIME)?.ok()?;
    let got = server.wait_recv(TIME)?.ok()?;
    assert_eq!((got.id(), got.buffer()?[0]), (first, 3));
    windows(&pd, &mut client, &mut server)?;
    datagrams(&channel, &pd)?;
    calls(&client, &srq)?;
    println!("all of them");
    Ok(())
}
