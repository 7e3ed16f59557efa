//! Ping-pong: every byte of a message comes back inverted.  The request's private data says how often.

use super::rdma::{sys, Op, Pd, Result};
use super::{hang_up, hung_up, must, number, param, Options, WAIT_LIMIT};

const SIZE: usize = 64;

pub fn serve(options: &Options) -> Result<()> {
    let pd = Pd::alloc()?;
    let listener = options.listen(&pd)?;
    let request = listener.request(None)?;
    let rounds = number(request.event.private_data(), 0);
    let mut ep = request.ep;
    let mut answer = pd.buffer(SIZE)?;
    ep.post_recv(pd.buffer(SIZE)?, 0..SIZE)?;
    ep.accept(Some(&param()))?;
    ep.expect(sys::EVENT_ESTABLISHED, WAIT_LIMIT)?;
    for _ in 0..rounds {
        let message = ep.wait_recv(WAIT_LIMIT)?.buffer()?;
        for (to, from) in answer.iter_mut().zip(message.iter()) {
            *to = !from;
        }
        ep.post_recv(message, 0..SIZE)?; // before the answer, after which the next may come
        ep.post_send(Op::Send, answer, 0..SIZE)?;
        answer = ep.wait_send(WAIT_LIMIT)?.buffer()?;
    }
    hung_up(&ep)
}

pub fn ask(options: &Options) -> Result<()> {
    let pd = Pd::alloc()?;
    let mut ep = options.dial(&pd)?;
    let (mut ping, mut pong) = (pd.buffer(SIZE)?, pd.buffer(SIZE)?);
    ep.connect(Some(&param().with_private_data(&options.count.to_le_bytes())))?;
    ep.expect(sys::EVENT_ESTABLISHED, WAIT_LIMIT)?;
    for round in 0..options.count {
        for (at, byte) in ping.iter_mut().enumerate() {
            *byte = (round as usize + at) as u8;
        }
        ep.post_recv(pong, 0..SIZE)?;
        pong = match ep.ask(Op::Send, ping, 0..SIZE, 10_000)? {
            Some(answer) => answer.buffer()?,
            None => ep.wait_recv(WAIT_LIMIT)?.buffer()?,
        };
        ping = ep.wait_send(WAIT_LIMIT)?.buffer()?;
        must(ping.iter().zip(pong.iter()).all(|(a, b)| *a == !b), "a byte came back wrong")?;
    }
    println!("pingpong: {} rounds, every byte verified", options.count);
    hang_up(&ep)
}
