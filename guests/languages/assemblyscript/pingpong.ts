// Ping-pong: every byte of a message comes back inverted.  The request's private data says how often.

import { FOREVER, Pd, expect } from "../../../sdk/assemblyscript/rdma";
import * as sys from "../../../sdk/assemblyscript/sys";
import { print } from "../../../sdk/assemblyscript/wasi";
import { Options, WAIT_LIMIT, hangUp, hungUp, param, paramWithCount } from "./common";

const SIZE: i32 = 64;

export function serve(options: Options): void {
  const pd = new Pd();
  const listener = options.listen(pd);
  const request = listener.request(FOREVER);
  const rounds = load<u32>(request.event.param_private_data);
  const ep = request.ep;
  const message = pd.buffer(SIZE), answer = pd.buffer(SIZE);
  ep.postRecv(message, SIZE);
  ep.accept(param());
  ep.expect(sys.EVENT_ESTABLISHED, WAIT_LIMIT);
  for (let round: u32 = 0; round < rounds; round++) {
    ep.waitRecv(WAIT_LIMIT);
    for (let i = 0; i < SIZE; i++) answer.bytes[i] = ~message.bytes[i];
    ep.postRecv(message, SIZE); // before the answer, after which the next may come
    ep.postSend(answer, SIZE);
    ep.waitSend(WAIT_LIMIT);
  }
  hungUp(ep);
}

export function ask(options: Options): void {
  const pd = new Pd();
  const ep = options.dial(pd);
  const ping = pd.buffer(SIZE), pong = pd.buffer(SIZE);
  ep.connect(paramWithCount(options.count));
  ep.expect(sys.EVENT_ESTABLISHED, WAIT_LIMIT);
  for (let round: u32 = 0; round < options.count; round++) {
    for (let i = 0; i < SIZE; i++) ping.bytes[i] = <u8>(round + i);
    ep.postRecv(pong, SIZE);
    ep.postSend(ping, SIZE);
    ep.waitSend(WAIT_LIMIT);
    ep.waitRecv(WAIT_LIMIT);
    for (let i = 0; i < SIZE; i++) expect(ping.bytes[i] == <u8>~pong.bytes[i], "a byte came back wrong");
  }
  print("pingpong: " + options.count.toString() + " rounds, every byte verified");
  hangUp(ep);
}
