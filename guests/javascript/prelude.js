// What scripts have in addition to the ABI's own functions.
"use strict";

rdma.SECOND = 1e9; // of timeouts, which are in ns
rdma.FOREVER = -1;

// Registered memory of so many bytes; it is in bytes, a Uint8Array.
rdma.region = function (pd, size, access = ["LOCAL_WRITE"]) {
  const bytes = new Uint8Array(size);
  return Object.assign(rdma.reg_mr(pd, bytes, access), { bytes });
};

// A region, or a view of its memory, as the buffer of a request.
rdma.sge = function (region, view = region.bytes) {
  return { addr: rdma.address(view), length: view.byteLength, lkey: region.lkey };
};

// Waits for the next event of an endpoint, which must be of this type and without an error.
rdma.expect = function (channel, ep, type, timeout = 10 * rdma.SECOND) {
  const event = rdma.wait_event(channel, ep, timeout);
  if (event.event !== type || event.status !== 0) {
    throw new Error(`waited for ${type}, got ${event.event} with status ${event.status}`);
  }
  return event;
};

// The ABI's function of that name, which waits for the end of what a synchronous endpoint's call started.
rdma.complete_id = rdma.complete;

// Waits for one completion, which must be a success.
rdma.complete = function (cq, timeout = 10 * rdma.SECOND) {
  const [wc] = rdma.wait_cq(cq, 1, timeout);
  if (wc.status !== "SUCCESS") throw new Error(`work request ${wc.wr_id} ended with ${wc.status}`);
  return wc;
};

// Bytes as a text, up to the first zero: rdma.text(read_file("/etc/peer.conf")).
rdma.text = function (bytes) {
  let encoded = "";
  for (const byte of new Uint8Array(bytes.buffer ?? bytes, bytes.byteOffset ?? 0, bytes.byteLength)) {
    if (byte === 0) break;
    encoded += "%" + byte.toString(16).padStart(2, "0");
  }
  return decodeURIComponent(encoded);
};

// A text as bytes.
rdma.encode = function (text) {
  return Uint8Array.from(unescape(encodeURIComponent(text)), (c) => c.charCodeAt(0));
};

BigInt.prototype.toJSON = function () {
  return this.toString();
};
