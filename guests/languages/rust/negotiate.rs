//! What connect and accept agree on.  The server rejects the first request with the reason, and accepts the second.
//! What one side offers to read, the other sees as what it has to serve.

use super::rdma::{sys, Pd, Result};
use super::{hang_up, hung_up, must, param, Options, WAIT_LIMIT};

const REFUSAL: &[u8] = b"try again";
const WELCOME: &[u8] = b"welcome";
const CONSUMER_DEFINED: i32 = 28; // a peer's own reason to reject (IBTA)

pub fn serve(options: &Options) -> Result<()> {
    let pd = Pd::alloc()?;
    let listener = options.listen(&pd)?;
    let first = listener.request(None)?;
    must(first.event.private_data().starts_with(b"first"), "the first request's private data")?;
    let offered = first.event.0.param;
    must(offered.responder_resources == 2 && offered.initiator_depth == 4, "what the first request offers")?;
    first.ep.reject(REFUSAL)?;

    let second = listener.request(WAIT_LIMIT)?;
    must(second.event.private_data().starts_with(b"second"), "the second request's private data")?;
    let granted = sys::ConnParam { responder_resources: 2, initiator_depth: 3, ..param() };
    second.ep.accept(Some(&granted.with_private_data(WELCOME)))?;
    second.ep.expect(sys::EVENT_ESTABLISHED, WAIT_LIMIT)?;
    hung_up(&second.ep)
}

pub fn ask(options: &Options) -> Result<()> {
    let pd = Pd::alloc()?;
    let offer = sys::ConnParam { responder_resources: 4, initiator_depth: 2, ..param() };
    let ep = options.dial(&pd)?;
    ep.connect(Some(&offer.with_private_data(b"first")))?;
    let refused = ep.wait_event(WAIT_LIMIT)?;
    must(refused.0.event == sys::EVENT_REJECTED && refused.0.status == CONSUMER_DEFINED, "the first request is rejected")?;
    must(refused.private_data().starts_with(REFUSAL), "the reason of the refusal")?;

    let ep = options.dial(&pd)?;
    ep.connect(Some(&offer.with_private_data(b"second")))?;
    let accepted = ep.expect(sys::EVENT_ESTABLISHED, WAIT_LIMIT)?;
    must(accepted.private_data().starts_with(WELCOME), "the acceptance's private data")?;
    let granted = accepted.0.param;
    must(granted.initiator_depth == 2 && granted.responder_resources == 3, "what the acceptance grants")?;
    println!("negotiate: rejected, then agreed on {} and {}", granted.initiator_depth, granted.responder_resources);
    hang_up(&ep)
}
