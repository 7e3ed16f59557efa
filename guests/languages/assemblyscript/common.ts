// What the examples share.

import { Ep, EventChannel, Pd, SECOND } from "../../../sdk/assemblyscript/rdma";
import * as sys from "../../../sdk/assemblyscript/sys";

export const WAIT_LIMIT: i64 = 10 * SECOND;
const QUEUE: u32 = 4;

/** What the command line says. */
export class Options {
  port: u16;
  address: string = ""; // of the server
  count: u32 = 100;

  constructor(words: string[]) {
    this.port = <u16>parseInt(words[2]);
    if (words.length > 3) this.address = words[3];
    if (words.length > 4) this.count = <u32>parseInt(words[4]);
  }

  listen(pd: Pd): Ep { return new EventChannel().listen(this.port, pd, QUEUE, 4); }
  dial(pd: Pd): Ep { return new EventChannel().dial(this.address, this.port, pd, QUEUE); }
}

/** Parameters of a connection with one RDMA READ at once. */
export function param(): sys.ConnParam {
  const p = new sys.ConnParam();
  p.responder_resources = p.initiator_depth = 1;
  p.retry_count = p.rnr_retry_count = 7;
  return p;
}

/** Those of a client, which says how often it will ask. */
export function paramWithCount(count: u32): sys.ConnParam {
  const p = param();
  store<u32>(p.private_data, count);
  p.private_data_len = 4;
  return p;
}

/** The client's end of a connection. */
export function hangUp(ep: Ep): void {
  ep.disconnect();
  ep.expect(sys.EVENT_DISCONNECTED, WAIT_LIMIT);
}

/** The server's. */
export function hungUp(ep: Ep): void {
  ep.expect(sys.EVENT_DISCONNECTED, WAIT_LIMIT);
  ep.disconnect();
}
