// What the classes for AssemblyScript have, within one guest.

import { EventChannel, Ep, GRH, Pd, poll, Route, SECOND, Srq, UDP_QKEY, Window, errorText, expect, immediate, must } from "../../../../sdk/assemblyscript/rdma";
import * as call from "../../../../sdk/assemblyscript/call";
import * as sys from "../../../../sdk/assemblyscript/sys";
import { print } from "../../../../sdk/assemblyscript/wasi";

const TIME: i64 = 10 * SECOND;
const SIZE: i32 = 4096;

class Pair {
  constructor(public client: Ep, public server: Ep) {}
}

function connect(channel: EventChannel, pd: Pd, port: u16, srq: Srq | null): Pair {
  const address = new sys.Address();
  must("device_address", sys.device_address(0, address.pointer));
  const listener = channel.listen(port, pd, 4, 4, srq);
  const client = channel.dial(text(address), port, pd, 4);
  client.connect(); // with READs and atomics, as many as the device can
  const event = channel.event(TIME); // of any endpoint
  expect(event.event == sys.EVENT_CONNECT_REQUEST && event.listener == listener.handle, "no request");
  const server = channel.request(event).ep;
  server.accept();
  client.expect(sys.EVENT_ESTABLISHED, TIME);
  server.expect(sys.EVENT_ESTABLISHED, TIME);
  return new Pair(client, server);
}

function text(address: sys.Address): string {
  const ip = address.ip;
  return load<u8>(ip).toString() + "." + load<u8>(ip + 1).toString() + "." + load<u8>(ip + 2).toString() + "." + load<u8>(ip + 3).toString();
}

// The program refers to the memory no longer: a receive is posted there.
function forget(pd: Pd, ep: Ep): void {
  ep.postRecv(pd.buffer(SIZE), SIZE);
}

function collected(pd: Pd, pair: Pair): void {
  forget(pd, pair.server);
  __collect();
  const others: StaticArray<u8>[] = [];
  for (let i = 0; i < 64; i++) others.push(new StaticArray<u8>(SIZE));
  const sent = pd.buffer(SIZE);
  for (let i = 0; i < SIZE; i++) sent.bytes[i] = 0xee;
  pair.client.postSend(sent, SIZE);
  pair.server.waitRecv(TIME);
  pair.client.waitSend(TIME);
  for (let i = 0; i < 64; i++) {
    for (let j = 0; j < SIZE; j++) expect(others[i][j] == 0, "the peer wrote into another object");
  }
}

function operations(pd: Pd, pair: Pair): void {
  const buffer = pd.buffer(64), open = pd.buffer(64, sys.ACCESS_LOCAL_WRITE | sys.ACCESS_REMOTE_WRITE | sys.ACCESS_REMOTE_ATOMIC);
  pair.server.postRecv(open, 8, 0, 56);
  buffer.bytes[8] = 7;
  pair.client.postSendImm(buffer, 8, 0x01020304, 1, 8);
  expect(immediate(pair.server.waitRecv(TIME)) == 0x01020304 && open.bytes[56] == 7, "send with a word");
  pair.client.waitSend(TIME);

  pair.server.postRecv(open, 0);
  pair.client.postWriteImm(buffer, 8, open.address + 16, open.rkey, 5, 2, 8);
  const entries = new sys.PollEntry(2);
  entries.at(0).handle = pair.client.channel.handle;
  entries.events = sys.POLL_IN;
  entries.at(1).handle = pair.server.receives;
  entries.events = sys.POLL_IN;
  expect(poll(entries, TIME) == 1 && entries.at(1).revents == sys.POLL_IN && entries.at(0).revents == 0, "poll");
  expect(immediate(pair.server.waitRecv(TIME)) == 5 && open.bytes[16] == 7, "write with a word");
  pair.client.waitSend(TIME);

  pair.client.postFetchAdd(buffer, open.address + 32, open.rkey, 5, 3, 24);
  pair.client.waitSend(TIME);
  pair.client.postCompareSwap(buffer, open.address + 32, open.rkey, 5, 9, 4, 40);
  pair.client.waitSend(TIME);
  expect(load<u64>(buffer.pointer + 24) == 0 && load<u64>(buffer.pointer + 40) == 5 && load<u64>(open.pointer + 32) == 9, "atomics");
  open.dereg();
}

function shared(pd: Pd, channel: EventChannel): void {
  const srq = new Srq(pd, 4), buffer = pd.buffer(64);
  srq.postRecv(buffer, 8, 11, 8);
  const pair = connect(channel, pd, 7002, srq);
  buffer.bytes[0] = 3;
  pair.client.postSend(buffer, 8);
  expect(pair.server.waitRecv(TIME).wr_id == 11 && buffer.bytes[8] == 3, "shared receive queue");
  pair.client.waitSend(TIME);
}

function datagrams(pd: Pd, channel: EventChannel): void {
  const asks = channel.datagrams(0, pd, 2), answers = channel.datagrams(7003, pd, 2);
  const buffer = pd.buffer(256), gid = new sys.GidEntry(), attr = new sys.AhAttr();
  must("query_gid_ex", sys.query_gid_ex(0, 1, 0, gid.pointer));
  memory.copy(attr.dgid, gid.gid, 16);
  attr.is_global = attr.port_num = attr.hop_limit = 1;
  const there = Route.of(pd, attr);
  asks.postRecv(buffer, 64);
  answers.postRecv(buffer, 64, 0, 64);
  buffer.bytes[128] = 5;
  asks.postDatagram(buffer, 8, there, answers.qpNumber(), UDP_QKEY, 0, 128);
  const wc = answers.waitRecv(TIME);
  expect(buffer.bytes[64 + GRH] == 5, "datagram");
  answers.postDatagram(buffer, 8, Route.back(pd, wc, buffer, 64), wc.src_qp, UDP_QKEY, 0, 128);
  asks.waitRecv(TIME);
  expect(buffer.bytes[GRH] == 5, "answer");
  there.destroy();
}

function windows(pd: Pd, pair: Pair): void {
  const buffer = pd.buffer(64), window = new Window(pd);
  const open = pd.buffer(64, sys.ACCESS_LOCAL_WRITE | sys.ACCESS_MW_BIND);
  pair.server.bind(window, open, 16, sys.ACCESS_REMOTE_WRITE, 7, 32);
  expect(pair.server.waitSend(TIME).wr_id == 7 && window.rkey != 0, "bind");
  buffer.bytes[0] = 9;
  pair.client.postWrite(buffer, 8, open.address + 32, window.rkey);
  pair.client.waitSend(TIME);
  expect(open.bytes[32] == 9, "write through a window");
  window.free();

  const far: u64 = 0x7000000000;
  const chosen = pd.bufferAt(4096, sys.ACCESS_LOCAL_WRITE, far);
  expect(chosen.address - far < 4096, "an address of its own");
  chosen.setAccess(sys.ACCESS_LOCAL_WRITE | sys.ACCESS_REMOTE_WRITE);
  pair.client.postWrite(buffer, 8, chosen.address + 8, chosen.rkey);
  pair.client.waitSend(TIME);
  expect(chosen.bytes[8] == 9, "write to an address of its own");
  chosen.dereg();
}

function groups(pd: Pd, channel: EventChannel): void {
  const sends = channel.datagrams(0, pd, 2), receives = channel.datagrams(0, pd, 2), buffer = pd.buffer(256);
  sends.join("239.1.2.3", 5);
  const joined = sends.expect(sys.EVENT_MULTICAST_JOIN, TIME);
  expect(joined.arg == 5, "tag of a group");
  receives.join("239.1.2.3");
  receives.expect(sys.EVENT_MULTICAST_JOIN, TIME);
  receives.postRecv(buffer, 64);
  buffer.bytes[128] = 6;
  sends.postDatagram(buffer, 8, Route.group(pd, joined), joined.param_qp_num, joined.qkey, 0, 128);
  receives.waitRecv(TIME);
  expect(buffer.bytes[GRH] == 6, "message to a group");
  sends.leave("239.1.2.3");
}

// Functions of call.ts: a failure does not end the guest.
function calls(pd: Pd, pair: Pair): void {
  const attr = new sys.DeviceAttr();
  expect(call.query_device(pair.client.handle, attr) == 0 && attr.max_qp > 0, "query_device");
  expect(call.dealloc_mw(12345) < 0 && errorText().includes("mw"), "an error that does not end the guest");
  expect(call.has_function("bind_mw") == 1 && call.has_function("no such") == 0, "has_function");
  const ece = new sys.Ece();
  ece.vendor_id = 0x15b3;
  const result = call.set_ece(pair.client.qp, ece);
  expect(result == 0 || result == -<i32>sys.EOPNOTSUPP || result == -<i32>sys.EINVAL, "set_ece");
  const wcs = new sys.Wc(4);
  expect(call.poll_cq(pair.client.sends, wcs) == 0, "poll_cq");
  const event = call.create_eventfd(3, 0), value = new StaticArray<u64>(1);
  expect(event > 0 && call.eventfd_read(event, value) == 0 && value[0] == 3, "eventfd");
  const srq = new Srq(pd, 4), sizes = new sys.SrqAttr();
  expect(call.query_srq(srq.handle, sizes) == 0 && sizes.max_wr >= 4, "query_srq");
  srq.destroy();
}

export function _start(): void {
  const channel = new EventChannel(), pd = new Pd();
  const pair = connect(channel, pd, 7001, null);
  collected(pd, pair);
  operations(pd, pair);
  shared(pd, channel);
  datagrams(pd, channel);
  windows(pd, pair);
  groups(pd, channel);
  calls(pd, pair);
  print("all of them");
}
