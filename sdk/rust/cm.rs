//! Connections: channels, listeners and endpoints.

use super::error::{check, Error, Result};
use super::host::nanoseconds;
use super::memory::{Memory, Pd, Region};
use super::srq::Srq;
use super::sys;
use super::window::Window;
use super::work::{Completion, Op, PostError, Queue};
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

/// Where endpoints report.  Clones are the same.
#[derive(Clone)]
pub struct EventChannel(Rc<ChannelHandle>);

struct ChannelHandle(sys::Handle);

impl Drop for ChannelHandle {
    fn drop(&mut self) {
        unsafe { sys::destroy_event_channel(self.0) };
    }
}

/// The sizes of a QP's queues.
#[derive(Clone, Copy)]
pub struct QpOptions {
    pub sends: u32,
    pub receives: u32,
}

impl QpOptions {
    fn attr(&self, qp_type: u32, srq: Option<&Srq>) -> sys::QpInitAttr {
        sys::QpInitAttr {
            srq: srq.map_or(0, |s| s.handle()), qp_type, max_send_wr: self.sends, max_recv_wr: self.receives, max_send_sge: 1, max_recv_sge: 1,
            ..Default::default()
        }
    }
}

/// An event of an endpoint, acknowledged already.
pub struct Event(pub sys::CmEvent);

impl Event {
    /// "ESTABLISHED"
    pub fn name(&self) -> &'static str {
        sys::cm_event_type_name(self.0.event)
    }

    /// What the peer sent, as long as its message allows and padded with zeros.
    pub fn private_data(&self) -> &[u8] {
        &self.0.param.private_data[..self.0.param.private_data_len as usize]
    }
}

impl EventChannel {
    pub fn new() -> Result<EventChannel> {
        let handle = check("create_event_channel", unsafe { sys::create_event_channel() })?;
        Ok(EventChannel(Rc::new(ChannelHandle(handle))))
    }

    /// Listens on a local address; each request comes with a QP.
    pub fn listen(&self, local: SocketAddr, pd: &Pd, options: QpOptions, backlog: u32) -> Result<Listener> {
        self.listener(local, pd, options, backlog, None)
    }

    /// Listens likewise; the QPs of requests receive from a shared queue.
    pub fn listen_shared(&self, local: SocketAddr, pd: &Pd, options: QpOptions, backlog: u32, srq: &Srq) -> Result<Listener> {
        self.listener(local, pd, options, backlog, Some(srq.clone()))
    }

    fn listener(&self, local: SocketAddr, pd: &Pd, options: QpOptions, backlog: u32, srq: Option<Srq>) -> Result<Listener> {
        let info = sys::AddrInfo { flags: sys::RAI_PASSIVE, source: local.into(), ..Default::default() };
        let handle = self.create(&info, pd, options, srq.as_ref())?;
        let listener = Listener { handle, srq, pd: pd.clone(), channel: self.clone() };
        check("listen", unsafe { sys::listen(handle, backlog) })?;
        Ok(listener)
    }

    /// An endpoint that is ready to connect to a peer.  It waits.
    pub fn dial(&self, peer: SocketAddr, pd: &Pd, options: QpOptions) -> Result<Ep> {
        let info = sys::AddrInfo { destination: peer.into(), ..Default::default() };
        Ep::adopt(self.create(&info, pd, options, None)?, self, pd)
    }

    /// An endpoint for datagrams at a local address; port 0 is any.
    pub fn datagrams(&self, local: SocketAddr, pd: &Pd, options: QpOptions) -> Result<Ep> {
        let handle = check("create_id", unsafe { sys::create_id(self.0 .0, sys::PS_UDP) })?;
        let mut ep = Ep::bare(handle, self, pd);
        check("bind_addr", unsafe { sys::bind_addr(handle, &local.into()) })?;
        let attr = options.attr(sys::QPT_UD, None);
        check("create_qp", unsafe { sys::create_qp(handle, pd.handle(), &attr) })?;
        ep.find_queues(None)?;
        Ok(ep)
    }

    fn create(&self, info: &sys::AddrInfo, pd: &Pd, options: QpOptions, srq: Option<&Srq>) -> Result<sys::Handle> {
        let attr = options.attr(sys::QPT_RC, srq);
        check("create_ep", unsafe { sys::create_ep(self.0 .0, info, pd.handle(), &attr) })
    }

    pub fn handle(&self) -> sys::Handle {
        self.0 .0
    }

    /// Waits for the next event of any endpoint; `event.0.ep` is its handle.  `Listener::request_of` takes a
    /// CONNECT_REQUEST.
    pub fn wait_any(&self, timeout: Option<Duration>) -> Result<Event> {
        self.wait(0, timeout)
    }

    fn wait(&self, ep: sys::Handle, timeout: Option<Duration>) -> Result<Event> {
        let mut event = sys::CmEvent::default();
        check("wait_event", unsafe { sys::wait_event(self.0 .0, ep, &mut event, nanoseconds(timeout)) })?;
        Ok(Event(event))
    }
}

/// An endpoint that takes connections.
pub struct Listener {
    handle: sys::Handle,
    // Dropped after the endpoint.
    srq: Option<Srq>,
    pd: Pd,
    channel: EventChannel,
}

impl Drop for Listener {
    fn drop(&mut self) {
        unsafe { sys::destroy_ep(self.handle) };
    }
}

/// A request to connect: accept or reject the endpoint.
pub struct Request {
    pub ep: Ep,
    pub event: Event,
}

impl Listener {
    pub fn local_address(&self) -> Result<SocketAddr> {
        let mut address = sys::Address::default();
        check("local_address", unsafe { sys::local_address(self.handle, &mut address) })?;
        address.socket_address().ok_or_else(|| Error::of("local_address", "no address of IP".into()))
    }

    pub fn handle(&self) -> sys::Handle {
        self.handle
    }

    /// Waits for the next request.
    pub fn request(&self, timeout: Option<Duration>) -> Result<Request> {
        self.request_of(self.channel.wait(self.handle, timeout)?)
    }

    /// The request of an event with this `listener`.
    pub fn request_of(&self, event: Event) -> Result<Request> {
        if event.0.event != sys::EVENT_CONNECT_REQUEST {
            return Err(unexpected(&event, sys::EVENT_CONNECT_REQUEST));
        }
        let mut ep = Ep::bare(event.0.ep, &self.channel, &self.pd);
        ep.find_queues(self.srq.as_ref())?;
        Ok(Request { ep, event })
    }
}

fn unexpected(event: &Event, want: u32) -> Error {
    Error::of("wait_event", format!("waited for {}, got {} with status {}", sys::cm_event_type_name(want), event.name(), event.0.status))
}

/// One end of a connection with its QP.
pub struct Ep {
    handle: sys::Handle,
    // Dropped after the endpoint is destroyed, in this order: posted memory, its domain, the channel.
    sends: Queue,
    receives: Queue,
    pd: Pd,
    channel: EventChannel,
}

impl Drop for Ep {
    fn drop(&mut self) {
        unsafe { sys::destroy_ep(self.handle) };
    }
}

impl Ep {
    /// Takes over an endpoint with a QP that calls of `sys` made; it is destroyed with the `Ep`.
    pub fn adopt(handle: sys::Handle, channel: &EventChannel, pd: &Pd) -> Result<Ep> {
        let mut ep = Ep::bare(handle, channel, pd);
        ep.find_queues(None)?;
        Ok(ep)
    }

    fn bare(handle: sys::Handle, channel: &EventChannel, pd: &Pd) -> Ep {
        Ep { handle, sends: Queue::new(0, 0), receives: Queue::new(0, 0), pd: pd.clone(), channel: channel.clone() }
    }

    fn find_queues(&mut self, srq: Option<&Srq>) -> Result<()> {
        let qp = check("ep_qp", unsafe { sys::ep_qp(self.handle) })?;
        self.sends = Queue::new(qp, check("ep_send_cq", unsafe { sys::ep_send_cq(self.handle) })?);
        let cq = check("ep_recv_cq", unsafe { sys::ep_recv_cq(self.handle) })?;
        self.receives = srq.map_or_else(|| Queue::new(qp, cq), |shared| Queue::shared(qp, cq, shared));
        Ok(())
    }

    /// The QP, for functions of `call`.
    pub fn qp(&self) -> sys::Handle {
        self.sends.qp()
    }

    /// The number of the QP, for datagrams.
    pub fn qp_number(&self) -> Result<u32> {
        let mut attr = sys::QpAttr::default();
        check("query_qp", unsafe { sys::query_qp(self.qp(), &mut attr) })?;
        Ok(attr.qp_num)
    }

    pub fn handle(&self) -> sys::Handle {
        self.handle
    }

    /// The CQ of sends, for `poll`.
    pub fn send_cq(&self) -> sys::Handle {
        self.sends.cq()
    }

    /// The CQ of receives.
    pub fn recv_cq(&self) -> sys::Handle {
        self.receives.cq()
    }

    pub fn pd(&self) -> &Pd {
        &self.pd
    }

    /// Asks the peer for a connection; an event answers.  None is the most the device can do.
    pub fn connect(&self, param: Option<&sys::ConnParam>) -> Result<()> {
        check("connect", unsafe { sys::connect(self.handle, pointer(param)) })?;
        Ok(())
    }

    /// Accepts the request that made this endpoint; ESTABLISHED follows.  None takes what was offered.
    pub fn accept(&self, param: Option<&sys::ConnParam>) -> Result<()> {
        check("accept", unsafe { sys::accept(self.handle, pointer(param)) })?;
        Ok(())
    }

    /// Rejects the request that made this endpoint.
    pub fn reject(self, private_data: &[u8]) -> Result<()> {
        check("reject", unsafe { sys::reject(self.handle, private_data.as_ptr(), private_data.len() as u32) })?;
        Ok(())
    }

    /// Sets the options of enhanced connection establishment to offer, or to answer with.
    pub fn set_local_ece(&self, ece: &sys::Ece) -> Result<()> {
        check("set_local_ece", unsafe { sys::set_local_ece(self.handle, ece) })?;
        Ok(())
    }

    /// The options that the peer offered, or answered with.
    pub fn remote_ece(&self) -> Result<sys::Ece> {
        let mut ece = sys::Ece::default();
        check("get_remote_ece", unsafe { sys::get_remote_ece(self.handle, &mut ece) })?;
        Ok(ece)
    }

    /// Joins a group; MULTICAST_JOIN follows, of which `Route::of` makes the way to the group.  The tag is `arg` of its events.
    pub fn join_multicast(&self, group: IpAddr, tag: u64) -> Result<()> {
        let address = SocketAddr::from((group, 0)).into();
        check("join_multicast", unsafe { sys::join_multicast(self.handle, &address, tag as i64) })?;
        Ok(())
    }

    pub fn leave_multicast(&self, group: IpAddr) -> Result<()> {
        let address = SocketAddr::from((group, 0)).into();
        check("leave_multicast", unsafe { sys::leave_multicast(self.handle, &address) })?;
        Ok(())
    }

    /// Posts a request to bind a window to a range of a region, and gives its number.  The region needs `sys::ACCESS_MW_BIND`.
    pub fn bind(
        &mut self, window: &mut Window, region: &Region, range: Range<usize>, access: u32,
    ) -> std::result::Result<u64, PostError> {
        assert!(range.start <= range.end && range.end <= region.len(), "{:?} of {} bytes", range, region.len());
        let bind = sys::MwBind {
            addr: region.address() + range.start as u64, length: (range.end - range.start) as u64, mr: region.handle(), access,
            ..Default::default()
        };
        let id = self.sends.bind(window, region.into(), bind)?;
        window.region = Some(region.clone());
        Ok(id)
    }

    /// Ends the connection; both sides get DISCONNECTED.
    pub fn disconnect(&self) -> Result<()> {
        check("disconnect", unsafe { sys::disconnect(self.handle) })?;
        Ok(())
    }

    /// Waits for the endpoint's next event, whatever it is.
    pub fn wait_event(&self, timeout: Option<Duration>) -> Result<Event> {
        self.channel.wait(self.handle, timeout)
    }

    /// Waits for the endpoint's next event; any but the wanted one, without a fault, is an error.
    pub fn expect(&self, want: u32, timeout: Option<Duration>) -> Result<Event> {
        let event = self.wait_event(timeout)?;
        if event.0.event != want || event.0.status != 0 {
            return Err(unexpected(&event, want));
        }
        Ok(event)
    }

    /// Posts a send request with a range of its memory, and gives its number.  The memory is the request's until
    /// `wait_send` gives it back.
    pub fn post_send(&mut self, op: Op, memory: impl Into<Memory>, range: Range<usize>) -> std::result::Result<u64, PostError> {
        self.sends.send(op, memory.into(), range)
    }

    /// Posts a receive, likewise; `wait_recv` gives the memory back.
    pub fn post_recv(&mut self, memory: impl Into<Memory>, range: Range<usize>) -> std::result::Result<u64, PostError> {
        self.receives.recv(memory.into(), range)
    }

    /// Posts a receive, and polls up to so many times for the end of one, in one call of the host.
    pub fn post_recv_spin(
        &mut self, memory: impl Into<Memory>, range: Range<usize>, attempts: u32,
    ) -> std::result::Result<Option<Completion>, PostError> {
        self.receives.recv_spin(memory.into(), range, attempts)
    }

    /// Posts a send request and polls for the receive of the answer, in one call of the host: the shortest round trip.
    /// None if no answer has come after so many attempts.  The request is posted then as well.
    pub fn ask(
        &mut self, op: Op, memory: impl Into<Memory>, range: Range<usize>, attempts: u32,
    ) -> std::result::Result<Option<Completion>, PostError> {
        let answers = self.receives.cq();
        match self.sends.send_spin(op, memory.into(), range, answers, attempts)? {
            None => Ok(None),
            Some(wc) => Ok(self.receives.land(wc).ok()),
        }
    }

    /// Waits for the end of a send request.
    pub fn wait_send(&mut self, timeout: Option<Duration>) -> Result<Completion> {
        self.sends.wait(timeout)
    }

    /// Waits for the end of a receive.
    pub fn wait_recv(&mut self, timeout: Option<Duration>) -> Result<Completion> {
        self.receives.wait(timeout)
    }

    pub fn poll_send(&mut self) -> Result<Option<Completion>> {
        self.sends.poll()
    }

    pub fn poll_recv(&mut self) -> Result<Option<Completion>> {
        self.receives.poll()
    }

    /// Polls up to so many times in native code.
    pub fn spin_send(&mut self, attempts: u32) -> Result<Option<Completion>> {
        self.sends.spin(attempts)
    }

    pub fn spin_recv(&mut self, attempts: u32) -> Result<Option<Completion>> {
        self.receives.spin(attempts)
    }
}

fn pointer<T>(value: Option<&T>) -> *const T {
    value.map_or(std::ptr::null(), |v| v as *const T)
}

impl sys::ConnParam {
    /// With private data, and the rest as it is.
    pub fn with_private_data(mut self, data: &[u8]) -> sys::ConnParam {
        self.private_data[..data.len()].copy_from_slice(data);
        self.private_data_len = data.len() as u8;
        self
    }
}
