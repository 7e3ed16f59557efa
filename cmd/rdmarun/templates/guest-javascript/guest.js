// NAME, a guest of rdmarun: a server that takes one connection and answers its message in capitals.  NAME.yaml brings the
// client.

const WAIT_LIMIT = 10 * rdma.SECOND;
const channel = rdma.create_event_channel(), pd = rdma.alloc_pd(null);
/** @type {QpInitAttrGiven} */
const sizes = {qp_type: "RC", max_send_wr: 1, max_recv_wr: 1, max_send_sge: 1, max_recv_sge: 1};
const listener = rdma.create_ep(channel, {flags: ["PASSIVE"], source: "0.0.0.0:7471"}, pd, sizes);
rdma.listen(listener, 1);
const client = rdma.expect(channel, listener, "CONNECT_REQUEST").ep;

// The client may send as soon as it is accepted, so the receive is posted before.
const memory = rdma.region(pd, 1024);
rdma.post_recv(rdma.ep_qp(client), [{num_sge: 1}], [rdma.sge(memory)]);
rdma.accept(client, null);
rdma.expect(channel, client, "ESTABLISHED", WAIT_LIMIT);

const {byte_len} = rdma.complete(rdma.ep_recv_cq(client), WAIT_LIMIT);
const message = memory.bytes.subarray(0, byte_len);
print(`NAME: ${rdma.text(message)}`);
message.set(new Uint8Array(rdma.encode(rdma.text(message).toUpperCase())));
rdma.post_send(rdma.ep_qp(client), [{opcode: "SEND", send_flags: ["SIGNALED"], num_sge: 1}], [rdma.sge(memory, message)]);
rdma.complete(rdma.ep_send_cq(client), WAIT_LIMIT);

rdma.expect(channel, client, "DISCONNECTED", WAIT_LIMIT);
rdma.disconnect(client); // the client's own waits for it
