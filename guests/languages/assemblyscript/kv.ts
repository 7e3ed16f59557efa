// A store of keys and values: the server puts what it is sent into a table, which clients read by RDMA READ, without it.
// A slot has a version, a key of 24 bytes and a value of 32.  The version is even when the slot is whole, and 0 when it
// is empty.

import { Buffer, Ep, FOREVER, Pd, expect } from "../../../sdk/assemblyscript/rdma";
import * as sys from "../../../sdk/assemblyscript/sys";
import { print } from "../../../sdk/assemblyscript/wasi";
import { Options, WAIT_LIMIT, hangUp, hungUp, param, paramWithCount } from "./common";

const SLOTS: u32 = 64;
const SLOT: u32 = 64;
const KEY: u32 = 24;
const VALUE: u32 = 32;
const FULL: u32 = u32.MAX_VALUE;

/** Where the search for a key begins (FNV-1a). */
function firstSlot(key: usize): u32 {
  let hash: u32 = 0x811c9dc5;
  for (let i: u32 = 0; i < KEY; i++) hash = (hash ^ load<u8>(key + i)) * 0x01000193;
  return hash % SLOTS;
}

/** Puts a message, a key and a value, into the table; which slot it has. */
function put(table: Buffer, message: usize): u32 {
  for (let step: u32 = 0; step < SLOTS; step++) {
    const slot = (firstSlot(message) + step) % SLOTS;
    const at = table.pointer + slot * SLOT;
    const version = load<u64>(at);
    if (version != 0 && memory.compare(at + 8, message, KEY) != 0) continue;
    store<u64>(at, version + 1); // odd while it changes
    memory.copy(at + 8, message, KEY + VALUE);
    store<u64>(at, version + 2);
    return slot;
  }
  return FULL;
}

export function serve(options: Options): void {
  const pd = new Pd();
  const table = pd.buffer(SLOTS * SLOT, sys.ACCESS_LOCAL_WRITE | sys.ACCESS_REMOTE_READ);
  const listener = options.listen(pd);
  const request = listener.request(FOREVER);
  const puts = load<u32>(request.event.param_private_data);
  const ep = request.ep;
  const message = pd.buffer(KEY + VALUE), answer = pd.buffer(4);
  ep.postRecv(message, KEY + VALUE);
  const ticket = param();
  store<u64>(ticket.private_data, table.address);
  store<u32>(ticket.private_data, table.rkey, 8);
  store<u32>(ticket.private_data, SLOTS, 12);
  ticket.private_data_len = 16;
  ep.accept(ticket);
  ep.expect(sys.EVENT_ESTABLISHED, WAIT_LIMIT);
  for (let i: u32 = 0; i < puts; i++) {
    ep.waitRecv(WAIT_LIMIT);
    store<u32>(answer.pointer, put(table, message.pointer));
    ep.postRecv(message, KEY + VALUE);
    ep.postSend(answer, 4);
    ep.waitSend(WAIT_LIMIT);
  }
  hungUp(ep);
}

/** The table as a client has it. */
class Remote {
  constructor(private ep: Ep, private address: u64, private rkey: u32, private slot: Buffer) {}

  /** Reads a value; null when there is none of that key. */
  get(text: string): string | null {
    const key = new StaticArray<u8>(KEY);
    String.UTF8.encodeUnsafe(changetype<usize>(text), text.length, changetype<usize>(key));
    const to = this.slot.pointer;
    let at = firstSlot(changetype<usize>(key));
    for (let step: u32 = 0; step < SLOTS; step++) {
      this.ep.postRead(this.slot, SLOT, this.address + at * SLOT, this.rkey);
      this.ep.waitSend(WAIT_LIMIT);
      const version = load<u64>(to);
      if (version % 2 == 1) continue; // it changes just now
      if (version == 0) return null;
      if (memory.compare(to + 8, changetype<usize>(key), KEY) == 0) return String.UTF8.decodeUnsafe(to + 8 + KEY, VALUE, true);
      at = (at + 1) % SLOTS;
    }
    return null;
  }
}

export function ask(options: Options): void {
  const pd = new Pd();
  const ep = options.dial(pd);
  ep.connect(paramWithCount(options.count));
  const ticket = ep.expect(sys.EVENT_ESTABLISHED, WAIT_LIMIT).param_private_data;
  expect(load<u32>(ticket, 12) == SLOTS, "the server's table has another size");
  const remote = new Remote(ep, load<u64>(ticket), load<u32>(ticket, 8), pd.buffer(SLOT));
  const message = pd.buffer(KEY + VALUE), answer = pd.buffer(4);
  for (let i: u32 = 0; i < options.count; i++) {
    const key = "key-" + i.toString(), value = "value-" + i.toString();
    message.bytes.fill(0);
    String.UTF8.encodeUnsafe(changetype<usize>(key), key.length, message.pointer);
    String.UTF8.encodeUnsafe(changetype<usize>(value), value.length, message.pointer + KEY);
    ep.postRecv(answer, 4);
    ep.postSend(message, KEY + VALUE);
    ep.waitSend(WAIT_LIMIT);
    ep.waitRecv(WAIT_LIMIT);
    expect(load<u32>(answer.pointer) != FULL, "the table is full");
  }
  for (let i: u32 = 0; i < options.count; i++) {
    expect(remote.get("key-" + i.toString()) == "value-" + i.toString(), "a key has another value");
  }
  expect(remote.get("missing") === null, "a key that no client has put is there");
  print("kv: " + options.count.toString() + " keys put and read back");
  hangUp(ep);
}
