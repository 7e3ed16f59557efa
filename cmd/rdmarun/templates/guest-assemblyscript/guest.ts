// NAME, a guest of rdmarun: a server that takes one connection and answers its message in capitals.  NAME.yaml brings the
// client.

import { EventChannel, FOREVER, Pd, SECOND } from "./rdma/rdma";
import * as sys from "./rdma/sys";
import { print } from "./rdma/wasi";

const PORT: u16 = 7471;
const LONGEST: u32 = 1024; // bytes of a message
const WAIT_LIMIT: i64 = 10 * SECOND;

export function _start(): void {
  const pd = new Pd();
  const listener = new EventChannel().listen(PORT, pd, 1);
  const client = listener.request(FOREVER).ep;
  const message = pd.buffer(LONGEST);

  // The client may send as soon as it is accepted, so the receive is posted before.
  client.postRecv(message, LONGEST);
  client.accept();
  client.expect(sys.EVENT_ESTABLISHED, WAIT_LIMIT);

  const length = client.waitRecv(WAIT_LIMIT).byte_len;
  print("NAME: " + String.UTF8.decodeUnsafe(message.pointer, length));
  for (let i: u32 = 0; i < length; i++) {
    const byte = message.bytes[i];
    if (byte >= 97 && byte <= 122) message.bytes[i] = byte - 32;
  }
  client.postSend(message, length);
  client.waitSend(WAIT_LIMIT);

  client.expect(sys.EVENT_DISCONNECTED, WAIT_LIMIT);
  client.disconnect(); // the client's own waits for it
}
