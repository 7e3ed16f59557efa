//! A store of keys and values: the server puts what it is sent into a table, which clients read by RDMA READ, without it.
//! A slot has a version, a key of 24 bytes and a value of 32.  The version is even when the slot is whole, and 0 when
//! it is empty.

use super::rdma::{sys, Buffer, Ep, Op, Pd, Region, Result};
use super::{hang_up, hung_up, must, number, param, Options, WAIT_LIMIT};

const SLOTS: usize = 64;
const SLOT: usize = 64;
const KEY: usize = 24;
const VALUE: usize = 32;
const FULL: u32 = u32::MAX;

type Key = [u8; KEY];

/// Where the search for a key begins (FNV-1a).
fn first_slot(key: &Key) -> usize {
    let hash = key.iter().fold(0x811c_9dc5u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    hash as usize % SLOTS
}

fn key_of(text: &str) -> Key {
    let mut key = [0; KEY];
    key[..text.len()].copy_from_slice(text.as_bytes());
    key
}

/// Puts a message, a key and a value, into the table; which slot it has.
fn put(table: &Region, message: &[u8]) -> u32 {
    let mut key = [0; KEY];
    key.copy_from_slice(&message[..KEY]);
    for step in 0..SLOTS {
        let slot = (first_slot(&key) + step) % SLOTS;
        let (at, mut there) = (slot * SLOT, [0; KEY]);
        let version = table.load(at);
        table.read(at + 8, &mut there);
        if version == 0 || there == key {
            table.store(at, version + 1); // odd while it changes
            table.write(at + 8, &message[..KEY + VALUE]);
            table.store(at, version + 2);
            return slot as u32;
        }
    }
    FULL
}

pub fn serve(options: &Options) -> Result<()> {
    let pd = Pd::alloc()?;
    let table = pd.region(SLOTS * SLOT, sys::ACCESS_LOCAL_WRITE | sys::ACCESS_REMOTE_READ)?;
    let listener = options.listen(&pd)?;
    let request = listener.request(None)?;
    let puts = number(request.event.private_data(), 0);
    let mut ep = request.ep;
    let mut answer = pd.buffer(4)?;
    ep.post_recv(pd.buffer(KEY + VALUE)?, 0..KEY + VALUE)?;
    let mut ticket = table.address().to_le_bytes().to_vec();
    ticket.extend(table.rkey().to_le_bytes());
    ticket.extend((SLOTS as u32).to_le_bytes());
    ep.accept(Some(&param().with_private_data(&ticket)))?;
    ep.expect(sys::EVENT_ESTABLISHED, WAIT_LIMIT)?;
    for _ in 0..puts {
        let message = ep.wait_recv(WAIT_LIMIT)?.buffer()?;
        answer.copy_from_slice(&put(&table, &message).to_le_bytes());
        ep.post_recv(message, 0..KEY + VALUE)?;
        ep.post_send(Op::Send, answer, 0..4)?;
        answer = ep.wait_send(WAIT_LIMIT)?.buffer()?;
    }
    hung_up(&ep)
}

/// The table as a client has it.
struct Remote {
    ep: Ep,
    address: u64,
    rkey: u32,
    slot: Option<Buffer>, // what was read last
}

impl Remote {
    /// Reads a value; None when there is none of that key.
    fn get(&mut self, key: &Key) -> Result<Option<Vec<u8>>> {
        let mut at = first_slot(key);
        for _ in 0..SLOTS {
            let slot = self.read(at)?;
            let version = u64::from_le_bytes([slot[0], slot[1], slot[2], slot[3], slot[4], slot[5], slot[6], slot[7]]);
            if version % 2 == 1 {
                continue; // it changes just now
            }
            if version == 0 {
                return Ok(None);
            }
            if slot[8..8 + KEY] == key[..] {
                return Ok(Some(slot[8 + KEY..].to_vec()));
            }
            at = (at + 1) % SLOTS;
        }
        Ok(None)
    }

    fn read(&mut self, slot: usize) -> Result<&[u8]> {
        let buffer = match self.slot.take() {
            Some(buffer) => buffer,
            None => self.ep.pd().buffer(SLOT)?,
        };
        let read = Op::Read { address: self.address + (slot * SLOT) as u64, rkey: self.rkey };
        self.ep.post_send(read, buffer, 0..SLOT)?;
        Ok(self.slot.insert(self.ep.wait_send(WAIT_LIMIT)?.buffer()?))
    }
}

pub fn ask(options: &Options) -> Result<()> {
    let pd = Pd::alloc()?;
    let mut ep = options.dial(&pd)?;
    ep.connect(Some(&param().with_private_data(&options.count.to_le_bytes())))?;
    let accepted = ep.expect(sys::EVENT_ESTABLISHED, WAIT_LIMIT)?;
    let ticket = accepted.private_data();
    must(number(ticket, 12) as usize == SLOTS, "the server's table has another size")?;
    let address = u64::from(number(ticket, 4)) << 32 | u64::from(number(ticket, 0));
    let rkey = number(ticket, 8);
    let (mut message, mut answer) = (pd.buffer(KEY + VALUE)?, pd.buffer(4)?);
    for i in 0..options.count {
        message.fill(0);
        message[..KEY].copy_from_slice(&key_of(&format!("key-{}", i)));
        let value = format!("value-{}", i);
        message[KEY..KEY + value.len()].copy_from_slice(value.as_bytes());
        ep.post_recv(answer, 0..4)?;
        ep.post_send(Op::Send, message, 0..KEY + VALUE)?;
        message = ep.wait_send(WAIT_LIMIT)?.buffer()?;
        answer = ep.wait_recv(WAIT_LIMIT)?.buffer()?;
        must(number(&answer, 0) != FULL, "the table is full")?;
    }
    let mut remote = Remote { ep, address, rkey, slot: None };
    for i in 0..options.count {
        let value = remote.get(&key_of(&format!("key-{}", i)))?;
        let want = format!("value-{}", i);
        must(value.map_or(false, |value| value.starts_with(want.as_bytes())), "a key has another value")?;
    }
    must(remote.get(&key_of("missing"))?.is_none(), "a key that no client has put is there")?;
    println!("kv: {} keys put and read back", options.count);
    hang_up(&remote.ep)
}
