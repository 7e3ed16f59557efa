// librdmacm and libibverbs as a WebAssembly guest of rdmarun sees them.  sys.ts is the ABI itself, and call.ts each of its
// functions with objects instead of pointers, both made of rdmarun's table; this is by hand.  The language has no exceptions:
// what fails here ends the guest with the host's sentence, and functions of call.ts return a negative errno.  What a guest
// leaves is freed by the host.

import * as sys from "./sys";
import { fail } from "./wasi";

/** A timeout that is the guest's own time limit. */
export const FOREVER: i64 = -1;
/** Of timeouts, which are nanoseconds. */
export const SECOND: i64 = 1000000000;

/** The sentence of the last failed call. */
export function errorText(): string {
  const text = new StaticArray<u8>(512);
  const at = changetype<usize>(text);
  return String.UTF8.decodeUnsafe(at, <usize>max(sys.error_text(at, text.length), 0));
}

/** The result of a host function; one below 0 ends the guest. */
export function must(name: string, result: i32): u32 {
  if (result < 0) fail(name + ": " + errorText());
  return <u32>result;
}

/** Ends the guest unless something holds. */
export function expect(holds: bool, what: string): void {
  if (!holds) fail(what);
}

/** Waits until every party of the barrier has come to it. */
export function barrier(name: string, timeout: i64 = FOREVER): void {
  const text = String.UTF8.encode(name);
  must("barrier", sys.barrier(changetype<usize>(text), text.byteLength, timeout));
}

/** A protection domain. */
export class Pd {
  handle: sys.Handle = must("alloc_pd", sys.alloc_pd(0));

  /** Zeroed, registered memory. */
  buffer(length: i32, access: u32 = sys.ACCESS_LOCAL_WRITE): Buffer {
    return new Buffer(this, length, access);
  }

  /**
   * The same under an address of the program's choice, a multiple of 4096.  The offset of the memory in its page is added, as
   * devices want it: Buffer.address is the sum.  Requests of this guest do not take it.
   */
  bufferAt(length: i32, access: u32, page: u64): Buffer {
    return new Buffer(this, length, access, true, page);
  }
}

/** Registered memory.  The collector leaves it alone until dereg, also when only the host or a peer knows its address. */
export class Buffer {
  bytes: StaticArray<u8>;
  keys: sys.Mr = new sys.Mr();
  handle: sys.Handle;

  constructor(pd: Pd, length: i32, access: u32, chosen: bool = false, page: u64 = 0) {
    this.bytes = new StaticArray<u8>(length);
    const keys = this.keys.pointer;
    this.handle = chosen
      ? must("reg_mr_iova", sys.reg_mr_iova(pd.handle, this.pointer, length, <i64>(page + this.pointer % 4096), access, keys))
      : must("reg_mr", sys.reg_mr(pd.handle, this.pointer, length, access, keys));
    __pin(this.pointer);
  }

  /** Changes what peers may do; its key may be another then. */
  setAccess(access: u32): void {
    const change = new sys.MrChange();
    change.flags = sys.REREG_ACCESS;
    change.access = access;
    must("rereg_mr", sys.rereg_mr(this.handle, change.pointer, this.keys.pointer));
  }

  get pointer(): usize { return changetype<usize>(this.bytes); }
  get length(): i32 { return this.bytes.length; }
  /** What a peer calls its first byte. */
  get address(): u64 { return this.keys.addr; }
  get rkey(): u32 { return this.keys.rkey; }

  /** Makes it, or a part of it, the buffer of a request of sys. */
  describe(sge: sys.Sge, length: u32, offset: u32): void {
    expect(offset <= <u32>this.length && length <= <u32>this.length - offset, "a request goes beyond its buffer");
    sge.addr = this.pointer + offset;
    sge.length = length;
    sge.lkey = this.keys.lkey;
  }

  /** Ends the registration. */
  dereg(): void {
    must("dereg_mr", sys.dereg_mr(this.handle));
    __unpin(this.pointer);
  }
}

/** Where endpoints report. */
export class EventChannel {
  handle: sys.Handle = must("create_event_channel", sys.create_event_channel());

  /** Listens on a port of any address; each request comes with a QP, which receives from srq if there is one. */
  listen(port: u16, pd: Pd, queue: u32, backlog: u32 = 1, srq: Srq | null = null): Ep {
    const info = new sys.AddrInfo();
    info.flags = sys.RAI_PASSIVE;
    info.source_family = 2; // IPv4
    info.source_port = port;
    const ep = this.create(info, pd, queue, srq);
    must("listen", sys.listen(ep.handle, backlog));
    return ep;
  }

  /** An endpoint that is ready to connect to a peer.  It waits. */
  dial(address: string, port: u16, pd: Pd, queue: u32): Ep {
    const found = numericAddress(address);
    const info = new sys.AddrInfo();
    memory.copy(info.destination, found.pointer, sys.Address.SIZE);
    info.destination_port = port;
    const ep = this.create(info, pd, queue, null);
    ep.adopt();
    return ep;
  }

  /** An endpoint for datagrams on a port of the default device's address; 0 is any port. */
  datagrams(port: u16, pd: Pd, queue: u32, srq: Srq | null = null): Ep {
    const address = new sys.Address();
    must("device_address", sys.device_address(0, address.pointer));
    address.port = port;
    const ep = new Ep(this, must("create_id", sys.create_id(this.handle, sys.PS_UDP)));
    must("bind_addr", sys.bind_addr(ep.handle, address.pointer));
    must("create_qp", sys.create_qp(ep.handle, pd.handle, sizes(sys.QPT_UD, queue, srq).pointer));
    ep.adopt();
    return ep;
  }

  /** Waits for the next event of any endpoint, event.ep; a request's listener is event.listener. */
  event(timeout: i64): sys.CmEvent {
    const event = new sys.CmEvent();
    must("wait_event", sys.wait_event(this.handle, 0, event.pointer, timeout));
    return event;
  }

  /** What a CONNECT_REQUEST of event() asks for. */
  request(event: sys.CmEvent): Request {
    const ep = new Ep(this, event.ep);
    ep.adopt();
    return new Request(ep, event);
  }

  private create(info: sys.AddrInfo, pd: Pd, queue: u32, srq: Srq | null): Ep {
    const attr = sizes(sys.QPT_RC, queue, srq);
    return new Ep(this, must("create_ep", sys.create_ep(this.handle, info.pointer, pd.handle, attr.pointer)));
  }
}

function sizes(type: u32, queue: u32, srq: Srq | null): sys.QpInitAttr {
  const attr = new sys.QpInitAttr();
  attr.qp_type = type;
  attr.max_send_wr = attr.max_recv_wr = queue;
  attr.max_send_sge = attr.max_recv_sge = 1;
  if (srq) attr.srq = srq.handle;
  return attr;
}

/** An address as it is written. */
function numericAddress(text: string): sys.Address {
  const query = new sys.AddrQuery();
  const found = new sys.AddrResult();
  expect(String.UTF8.byteLength(text) < 256, "no address is as long as this");
  String.UTF8.encodeUnsafe(changetype<usize>(text), text.length, query.node);
  query.flags = sys.RAI_NUMERICHOST;
  must("getaddrinfo", sys.getaddrinfo(query.pointer, found.pointer, 5 * SECOND));
  const address = new sys.Address();
  memory.copy(address.pointer, found.destination, sys.Address.SIZE);
  return address;
}

/** A shared receive queue. */
export class Srq {
  handle: sys.Handle;
  private sge: sys.Sge = new sys.Sge();
  private wr: sys.RecvWr = new sys.RecvWr();

  constructor(pd: Pd, queue: u32) {
    const attr = new sys.SrqAttr();
    attr.max_wr = queue;
    attr.max_sge = 1;
    this.handle = must("create_srq", sys.create_srq(pd.handle, attr.pointer));
  }

  /** Posts a receive for whichever QP of the queue gets the next message. */
  postRecv(buffer: Buffer, length: u32, id: u64 = 0, offset: u32 = 0): void {
    buffer.describe(this.sge, length, offset);
    this.wr.wr_id = id;
    this.wr.num_sge = 1;
    must("post_srq_recv", sys.post_srq_recv(this.handle, this.wr.pointer, 1, this.sge.pointer, 1, 0));
  }

  destroy(): void { must("destroy_srq", sys.destroy_srq(this.handle)); }
}

/** Where datagrams go: an address handle. */
export class Route {
  private constructor(public handle: sys.Handle, public number: u32) {}

  static of(pd: Pd, attr: sys.AhAttr): Route {
    const ah = new sys.Ah();
    return new Route(must("create_ah", sys.create_ah(pd.handle, attr.pointer, ah.pointer)), ah.number);
  }

  /** The way back to the sender of a datagram, the QP wc.src_qp; buffer and offset are those of the receive. */
  static back(pd: Pd, wc: sys.Wc, buffer: Buffer, offset: u32 = 0): Route {
    const ah = new sys.Ah();
    expect(offset <= <u32>buffer.length && <u32>buffer.length - offset >= GRH, "the buffer has no header of a datagram there");
    return new Route(must("create_ah_from_wc", sys.create_ah_from_wc(pd.handle, wc.pointer, buffer.pointer + offset, ah.pointer)), ah.number);
  }

  /** The route to the group of a MULTICAST_JOIN; event.param_qp_num is its QP. */
  static group(pd: Pd, event: sys.CmEvent): Route {
    const attr = new sys.AhAttr();
    memory.copy(attr.pointer, event.ah, sys.AhAttr.SIZE);
    return Route.of(pd, attr);
  }

  destroy(): void { must("destroy_ah", sys.destroy_ah(this.handle)); }
}

/** A memory window: a key of its own to a part of a buffer.  Ep.bind binds it. */
export class Window {
  handle: sys.Handle;
  /** Good once the request to bind has completed. */
  rkey: u32 = 0;

  /** Of type 1 it is good for every QP of the domain, of type 2 for the one that binds it. */
  constructor(pd: Pd, type: u32 = 1) {
    this.handle = must("alloc_mw", sys.alloc_mw(pd.handle, type));
  }

  /** Its key ends. */
  free(): void { must("dealloc_mw", sys.dealloc_mw(this.handle)); }
}

/** How much of a datagram's receive is the header of the network, in front of the message. */
export const GRH: u32 = 40;
/** The queue key of QPs of datagrams(). */
export const UDP_QKEY: u32 = 0x01234567;

/** An endpoint: a listener, or one end of a connection with its QP. */
export class Ep {
  qp: sys.Handle = 0;
  sends: sys.Handle = 0;
  receives: sys.Handle = 0;
  private sge: sys.Sge = new sys.Sge();
  private sendWr: sys.SendWr = new sys.SendWr();
  private recvWr: sys.RecvWr = new sys.RecvWr();
  private wc: sys.Wc = new sys.Wc();

  constructor(public channel: EventChannel, public handle: sys.Handle) {}

  /** Finds the QP and its CQs. */
  adopt(): void {
    this.qp = must("ep_qp", sys.ep_qp(this.handle));
    this.sends = must("ep_send_cq", sys.ep_send_cq(this.handle));
    this.receives = must("ep_recv_cq", sys.ep_recv_cq(this.handle));
  }

  /** Waits for the endpoint's next event. */
  event(timeout: i64): sys.CmEvent {
    const event = new sys.CmEvent();
    must("wait_event", sys.wait_event(this.channel.handle, this.handle, event.pointer, timeout));
    return event;
  }

  /** Waits for the endpoint's next event; any but the wanted one ends the guest. */
  expect(want: u32, timeout: i64): sys.CmEvent {
    const event = this.event(timeout);
    if (event.event != want || event.status != 0) {
      fail("waited for " + sys.cm_event_type_name(want) + ", got " + sys.cm_event_type_name(event.event) + " with status " + event.status.toString());
    }
    return event;
  }

  /** Waits for a request of a listener. */
  request(timeout: i64): Request { return this.channel.request(this.expect(sys.EVENT_CONNECT_REQUEST, timeout)); }

  /**
   * Asks the peer for a connection.  Without param the QP may have as many RDMA READs and atomics in progress as the device; a
   * new sys.ConnParam allows none.
   */
  connect(param: sys.ConnParam | null = null): void {
    must("connect", sys.connect(this.handle, param ? param.pointer : 0));
  }

  /** Accepts a request.  Without param the QP may have as many RDMA READs and atomics in progress as both can. */
  accept(param: sys.ConnParam | null = null): void {
    must("accept", sys.accept(this.handle, param ? param.pointer : 0));
  }

  disconnect(): void { must("disconnect", sys.disconnect(this.handle)); }
  destroy(): void { must("destroy_ep", sys.destroy_ep(this.handle)); }

  reject(reason: string): void {
    const text = String.UTF8.encode(reason);
    must("reject", sys.reject(this.handle, changetype<usize>(text), text.byteLength));
  }

  /** Posts a receive with a part of a buffer. */
  postRecv(buffer: Buffer, length: u32, id: u64 = 0, offset: u32 = 0): void {
    buffer.describe(this.sge, length, offset);
    this.recvWr.wr_id = id;
    this.recvWr.num_sge = 1;
    must("post_recv", sys.post_recv(this.qp, this.recvWr.pointer, 1, this.sge.pointer, 1, 0));
  }

  postSend(buffer: Buffer, length: u32, id: u64 = 0, offset: u32 = 0): void {
    this.post(sys.WR_SEND, buffer, length, 0, 0, id, offset);
  }

  /** Sends, and the peer's completion has the word: immediate(wc). */
  postSendImm(buffer: Buffer, length: u32, imm: u32, id: u64 = 0, offset: u32 = 0): void {
    this.sendWr.imm_data = bswap<u32>(imm);
    this.post(sys.WR_SEND_WITH_IMM, buffer, length, 0, 0, id, offset);
  }

  /** Reads the peer's memory. */
  postRead(buffer: Buffer, length: u32, address: u64, rkey: u32, id: u64 = 0, offset: u32 = 0): void {
    this.post(sys.WR_RDMA_READ, buffer, length, address, rkey, id, offset);
  }

  /** Writes to the peer's memory. */
  postWrite(buffer: Buffer, length: u32, address: u64, rkey: u32, id: u64 = 0, offset: u32 = 0): void {
    this.post(sys.WR_RDMA_WRITE, buffer, length, address, rkey, id, offset);
  }

  /** Writes to the peer's memory, and completes a receive of the peer's with the word. */
  postWriteImm(buffer: Buffer, length: u32, address: u64, rkey: u32, imm: u32, id: u64 = 0, offset: u32 = 0): void {
    this.sendWr.imm_data = bswap<u32>(imm);
    this.post(sys.WR_RDMA_WRITE_WITH_IMM, buffer, length, address, rkey, id, offset);
  }

  /** Adds to a word of the peer's memory; the old one comes to the buffer. */
  postFetchAdd(buffer: Buffer, address: u64, rkey: u32, add: u64, id: u64 = 0, offset: u32 = 0): void {
    this.sendWr.compare_add = add;
    this.post(sys.WR_ATOMIC_FETCH_AND_ADD, buffer, 8, address, rkey, id, offset);
  }

  /** Puts a word in the place of another, if that is there; what was there comes to the buffer. */
  postCompareSwap(buffer: Buffer, address: u64, rkey: u32, compare: u64, swap: u64, id: u64 = 0, offset: u32 = 0): void {
    this.sendWr.compare_add = compare;
    this.sendWr.swap = swap;
    this.post(sys.WR_ATOMIC_CMP_AND_SWP, buffer, 8, address, rkey, id, offset);
  }

  /** Sends a datagram to a QP. */
  postDatagram(buffer: Buffer, length: u32, route: Route, qpn: u32, qkey: u32 = UDP_QKEY, id: u64 = 0, offset: u32 = 0): void {
    this.sendWr.ah = route.number;
    this.sendWr.remote_qpn = qpn;
    this.sendWr.remote_qkey = qkey;
    this.post(sys.WR_SEND, buffer, length, 0, 0, id, offset);
  }

  private post(opcode: u32, buffer: Buffer, length: u32, address: u64, rkey: u32, id: u64, offset: u32): void {
    buffer.describe(this.sge, length, offset);
    const wr = this.sendWr;
    wr.wr_id = id;
    wr.opcode = opcode;
    wr.send_flags = sys.SEND_SIGNALED;
    wr.num_sge = 1;
    wr.remote_addr = address;
    wr.rkey = rkey;
    must("post_send", sys.post_send(this.qp, wr.pointer, 1, this.sge.pointer, 1, 0));
  }

  /** Posts a request to bind a window to a part of a buffer, which needs sys.ACCESS_MW_BIND. */
  bind(window: Window, buffer: Buffer, length: u32, access: u32, id: u64 = 0, offset: u32 = 0): void {
    buffer.describe(this.sge, length, offset);
    const bind = new sys.MwBind();
    bind.wr_id = id;
    bind.addr = buffer.address + offset;
    bind.length = length;
    bind.mr = buffer.handle;
    bind.access = access;
    bind.send_flags = sys.SEND_SIGNALED;
    must("bind_mw", sys.bind_mw(this.qp, window.handle, bind.pointer));
    window.rkey = bind.rkey;
  }

  /** Joins a group; MULTICAST_JOIN follows, and Route.group makes the way to the group of it. */
  join(group: string, tag: i64 = 0): void {
    must("join_multicast", sys.join_multicast(this.handle, numericAddress(group).pointer, tag));
  }

  leave(group: string): void {
    must("leave_multicast", sys.leave_multicast(this.handle, numericAddress(group).pointer));
  }

  /** Sets the options of enhanced connection establishment to offer, or to answer with. */
  setEce(ece: sys.Ece): void { must("set_local_ece", sys.set_local_ece(this.handle, ece.pointer)); }

  /** The options that the peer offered, or answered with. */
  remoteEce(): sys.Ece {
    const ece = new sys.Ece();
    must("get_remote_ece", sys.get_remote_ece(this.handle, ece.pointer));
    return ece;
  }

  /** The number of the QP, for datagrams. */
  qpNumber(): u32 {
    const attr = new sys.QpAttr();
    must("query_qp", sys.query_qp(this.qp, attr.pointer));
    return attr.qp_num;
  }

  /** Waits for the end of a send request, which must be a success. */
  waitSend(timeout: i64): sys.Wc { return this.complete(this.sends, timeout); }
  /** Waits for the end of a receive, which must be a success. */
  waitRecv(timeout: i64): sys.Wc { return this.complete(this.receives, timeout); }

  private complete(cq: sys.Handle, timeout: i64): sys.Wc {
    must("wait_cq", sys.wait_cq(cq, this.wc.pointer, 1, timeout));
    if (this.wc.status != sys.WC_SUCCESS) {
      fail("work request " + this.wc.wr_id.toString() + " ended with " + sys.wc_status_name(this.wc.status));
    }
    return this.wc;
  }
}

/** The word that came with a message. */
export function immediate(wc: sys.Wc): u32 {
  expect((wc.wc_flags & sys.WC_WITH_IMM) != 0, "the message came without a word");
  return bswap<u32>(wc.imm_data);
}

/**
 * Waits until there is one of several things, and takes none of them: entries has handles and events (sys.POLL_IN).  Returns how
 * many have revents; 0 when the time is over.
 */
export function poll(entries: sys.PollEntry, timeout: i64): i32 {
  entries.at(0);
  return must("poll_set", sys.poll_set(entries.pointer, entries.count, timeout));
}

/** A request to connect: accept or reject the endpoint. */
export class Request {
  constructor(public ep: Ep, public event: sys.CmEvent) {}
}

/** Private data of a text. */
export function setPrivateData(param: sys.ConnParam, text: string): void {
  expect(String.UTF8.byteLength(text) < 256, "private data of more than 255 bytes");
  String.UTF8.encodeUnsafe(changetype<usize>(text), text.length, param.private_data);
  param.private_data_len = <u8>String.UTF8.byteLength(text);
}

/** Whether an event's private data, which is padded with zeros, begins with a text. */
export function privateDataBegins(event: sys.CmEvent, text: string): bool {
  const bytes = String.UTF8.encode(text);
  return <i32>event.param_private_data_len >= bytes.byteLength
    && memory.compare(event.param_private_data, changetype<usize>(bytes), bytes.byteLength) == 0;
}
