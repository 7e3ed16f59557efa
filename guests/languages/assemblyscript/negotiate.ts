// What connect and accept agree on.  The server rejects the first request with the reason, and accepts the second.
// What one side offers to read, the other sees as what it has to serve.

import { FOREVER, Pd, expect, privateDataBegins, setPrivateData } from "../../../sdk/assemblyscript/rdma";
import * as sys from "../../../sdk/assemblyscript/sys";
import { print } from "../../../sdk/assemblyscript/wasi";
import { Options, WAIT_LIMIT, hangUp, hungUp, param } from "./common";

const REFUSAL = "try again";
const WELCOME = "welcome";
const CONSUMER_DEFINED: i32 = 28; // a peer's own reason to reject (IBTA)

export function serve(options: Options): void {
  const pd = new Pd();
  const listener = options.listen(pd);
  const first = listener.request(FOREVER);
  expect(privateDataBegins(first.event, "first"), "the first request's private data");
  expect(first.event.param_responder_resources == 2 && first.event.param_initiator_depth == 4, "what the first request offers");
  first.ep.reject(REFUSAL);

  const second = listener.request(WAIT_LIMIT);
  expect(privateDataBegins(second.event, "second"), "the second request's private data");
  const granted = param();
  granted.responder_resources = 2;
  granted.initiator_depth = 3;
  setPrivateData(granted, WELCOME);
  second.ep.accept(granted);
  second.ep.expect(sys.EVENT_ESTABLISHED, WAIT_LIMIT);
  hungUp(second.ep);
}

export function ask(options: Options): void {
  const pd = new Pd();
  const offer = param();
  offer.responder_resources = 4;
  offer.initiator_depth = 2;
  setPrivateData(offer, "first");
  let ep = options.dial(pd);
  ep.connect(offer);
  const refused = ep.event(WAIT_LIMIT);
  expect(refused.event == sys.EVENT_REJECTED && refused.status == CONSUMER_DEFINED, "the first request is rejected");
  expect(privateDataBegins(refused, REFUSAL), "the reason of the refusal");

  ep = options.dial(pd);
  setPrivateData(offer, "second");
  ep.connect(offer);
  const accepted = ep.expect(sys.EVENT_ESTABLISHED, WAIT_LIMIT);
  expect(privateDataBegins(accepted, WELCOME), "the acceptance's private data");
  expect(accepted.param_initiator_depth == 2 && accepted.param_responder_resources == 3, "what the acceptance grants");
  print("negotiate: rejected, then agreed on " + accepted.param_initiator_depth.toString() + " and " + accepted.param_responder_resources.toString());
  hangUp(ep);
}
