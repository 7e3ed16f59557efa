// What the classes for AssemblyScript have, within one guest.

import { EventChannel, Ep, GRH, Pd, poll, Route, SECOND, Srq, UDP_QKEY, expect, immediate, must } from "../../../../sdk/assemblyscript/rdma";
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

export function _start(): void {
  const channel = new EventChannel(), pd = new Pd();
  const pair = connect(channel, pd, 7001, null);
  collected(pd, pair);
  operations(pd, pair);
  shared(pd, channel);
  datagrams(pd, channel);
  print("all of them");
}
