// librdmacm and libibverbs as a WebAssembly guest of rdmarun sees them.  sys.ts is the ABI itself, made of rdmarun's table; this
// is by hand and calls it.  The language has no exceptions: what fails here ends the guest with the host's sentence, and who
// wants to go on calls sys.  What a guest leaves is freed by the host.

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
}

/** Registered memory.  Keep it while requests or peers use it: memory that nothing names is another's soon. */
export class Buffer {
  bytes: StaticArray<u8>;
  keys: sys.Mr = new sys.Mr();
  handle: sys.Handle;

  constructor(pd: Pd, length: i32, access: u32) {
    this.bytes = new StaticArray<u8>(length);
    this.handle = must("reg_mr", sys.reg_mr(pd.handle, this.pointer, length, access, this.keys.pointer));
  }

  get pointer(): usize { return changetype<usize>(this.bytes); }
  get length(): i32 { return this.bytes.length; }
  /** What a peer calls its first byte. */
  get address(): u64 { return this.keys.addr; }
  get rkey(): u32 { return this.keys.rkey; }

  /** Ends the registration. */
  dereg(): void { must("dereg_mr", sys.dereg_mr(this.handle)); }
}

/** Where endpoints report. */
export class EventChannel {
  handle: sys.Handle = must("create_event_channel", sys.create_event_channel());

  /** Listens on a port of any address; each request comes with a QP. */
  listen(port: u16, pd: Pd, queue: u32, backlog: u32 = 1): Ep {
    const info = new sys.AddrInfo();
    info.flags = sys.RAI_PASSIVE;
    info.source_family = 2; // IPv4
    info.source_port = port;
    const ep = this.create(info, pd, queue);
    must("listen", sys.listen(ep.handle, backlog));
    return ep;
  }

  /** An endpoint that is ready to connect to a peer.  It waits. */
  dial(address: string, port: u16, pd: Pd, queue: u32): Ep {
    const query = new sys.AddrQuery();
    const found = new sys.AddrResult();
    expect(String.UTF8.byteLength(address) < 256, "no address is as long as this");
    String.UTF8.encodeUnsafe(changetype<usize>(address), address.length, query.node);
    query.flags = sys.RAI_NUMERICHOST;
    must("getaddrinfo", sys.getaddrinfo(query.pointer, found.pointer, 5 * SECOND));
    const info = new sys.AddrInfo();
    memory.copy(info.destination, found.destination, sys.Address.SIZE);
    info.destination_port = port;
    const ep = this.create(info, pd, queue);
    ep.adopt();
    return ep;
  }

  private create(info: sys.AddrInfo, pd: Pd, queue: u32): Ep {
    const attr = new sys.QpInitAttr();
    attr.qp_type = sys.QPT_RC;
    attr.max_send_wr = attr.max_recv_wr = queue;
    attr.max_send_sge = attr.max_recv_sge = 1;
    return new Ep(this, must("create_ep", sys.create_ep(this.handle, info.pointer, pd.handle, attr.pointer)));
  }
}

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
  request(timeout: i64): Request {
    const event = this.expect(sys.EVENT_CONNECT_REQUEST, timeout);
    const ep = new Ep(this.channel, event.ep);
    ep.adopt();
    return new Request(ep, event);
  }

  connect(param: sys.ConnParam): void { must("connect", sys.connect(this.handle, param.pointer)); }
  accept(param: sys.ConnParam): void { must("accept", sys.accept(this.handle, param.pointer)); }
  disconnect(): void { must("disconnect", sys.disconnect(this.handle)); }
  destroy(): void { must("destroy_ep", sys.destroy_ep(this.handle)); }

  reject(reason: string): void {
    const text = String.UTF8.encode(reason);
    must("reject", sys.reject(this.handle, changetype<usize>(text), text.byteLength));
  }

  /** Posts a receive with the first bytes of a buffer. */
  postRecv(buffer: Buffer, length: u32, id: u64 = 0): void {
    this.describe(buffer, length);
    this.recvWr.wr_id = id;
    this.recvWr.num_sge = 1;
    must("post_recv", sys.post_recv(this.qp, this.recvWr.pointer, 1, this.sge.pointer, 1, 0));
  }

  postSend(buffer: Buffer, length: u32, id: u64 = 0): void {
    this.post(sys.WR_SEND, buffer, length, 0, 0, id);
  }

  /** Reads the peer's memory. */
  postRead(buffer: Buffer, length: u32, address: u64, rkey: u32, id: u64 = 0): void {
    this.post(sys.WR_RDMA_READ, buffer, length, address, rkey, id);
  }

  /** Writes to the peer's memory. */
  postWrite(buffer: Buffer, length: u32, address: u64, rkey: u32, id: u64 = 0): void {
    this.post(sys.WR_RDMA_WRITE, buffer, length, address, rkey, id);
  }

  private post(opcode: u32, buffer: Buffer, length: u32, address: u64, rkey: u32, id: u64): void {
    this.describe(buffer, length);
    const wr = this.sendWr;
    wr.wr_id = id;
    wr.opcode = opcode;
    wr.send_flags = sys.SEND_SIGNALED;
    wr.num_sge = 1;
    wr.remote_addr = address;
    wr.rkey = rkey;
    must("post_send", sys.post_send(this.qp, wr.pointer, 1, this.sge.pointer, 1, 0));
  }

  private describe(buffer: Buffer, length: u32): void {
    expect(length <= <u32>buffer.length, "a request is longer than its buffer");
    this.sge.addr = buffer.pointer;
    this.sge.length = length;
    this.sge.lkey = buffer.keys.lkey;
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

/** Somebody who wants to connect: accept or reject the endpoint. */
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
