//! Protection domains, and memory that is registered in them.

use super::error::{check, Error, Result};
use super::sys;
use std::cell::Cell;
use std::ops::{Deref, DerefMut, Range};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A protection domain.  Clones are the same; it is freed with the last, and with the last memory and endpoint in it.
#[derive(Clone)]
pub struct Pd(Rc<PdHandle>);

struct PdHandle(sys::Handle);

impl Drop for PdHandle {
    fn drop(&mut self) {
        unsafe { sys::dealloc_pd(self.0) };
    }
}

impl Pd {
    /// On the default device.
    pub fn alloc() -> Result<Pd> {
        Ok(Pd(Rc::new(PdHandle(check("alloc_pd", unsafe { sys::alloc_pd(0) })?))))
    }

    pub fn handle(&self) -> sys::Handle {
        self.0 .0
    }

    /// Zeroed memory for messages; peers do not reach it but by what is sent and received.
    pub fn buffer(&self, length: usize) -> Result<Buffer> {
        Ok(Buffer(Registered::new(self, length, sys::ACCESS_LOCAL_WRITE, None)?))
    }

    /// Zeroed memory that peers reach as access allows.
    pub fn region(&self, length: usize, access: u32) -> Result<Region> {
        Ok(Region(Rc::new(Registered::new(self, length, access, None)?)))
    }

    /// The same under an address of the program's choice, a multiple of a page.  The offset of the memory in its page is added,
    /// as devices want it: `Region::address` has the sum.  No request of this guest takes the region.
    pub fn region_at(&self, length: usize, access: u32, page: u64) -> Result<Region> {
        Ok(Region(Rc::new(Registered::new(self, length, access, Some(page))?)))
    }
}

/// The bytes of a page, as devices count.
const PAGE: u64 = 4096;

/// Memory and its registration.  It is of u64, so that each eighth byte begins a word for atomics.  It does not move.
struct Registered {
    handle: sys::Handle,
    keys: Cell<sys::Mr>,
    words: *mut [u64],
    length: usize,
    _pd: Pd, // dropped after the registration
}

impl Registered {
    fn new(pd: &Pd, length: usize, access: u32, page: Option<u64>) -> Result<Registered> {
        let words = Box::into_raw(vec![0u64; (length + 7) / 8].into_boxed_slice());
        let mut keys = sys::Mr::default();
        let (of, start, size) = (pd.handle(), words as *const u8, length as u32);
        let result = match page {
            None => check("reg_mr", unsafe { sys::reg_mr(of, start, size, access, &mut keys) }),
            Some(page) => {
                let iova = (page + (start as u64) % PAGE) as i64;
                check("reg_mr_iova", unsafe { sys::reg_mr_iova(of, start, size, iova, access, &mut keys) })
            }
        };
        match result {
            Ok(handle) => Ok(Registered { handle, keys: Cell::new(keys), words, length, _pd: pd.clone() }),
            Err(error) => {
                drop(unsafe { Box::from_raw(words) });
                Err(error)
            }
        }
    }

    fn at(&self, offset: usize, length: usize) -> *mut u8 {
        assert!(offset <= self.length && length <= self.length - offset, "{}+{} of {} bytes", offset, length, self.length);
        unsafe { (self.words as *mut u8).add(offset) }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // What the host still uses is not given to others.
        if unsafe { sys::dereg_mr(self.handle) } == 0 {
            drop(unsafe { Box::from_raw(self.words) });
        }
    }
}

/// Memory for messages, of one owner: the program, or the work request that it is posted with.
pub struct Buffer(Registered);

impl Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        unsafe { std::slice::from_raw_parts(self.0.words as *const u8, self.0.length) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        unsafe { std::slice::from_raw_parts_mut(self.0.words as *mut u8, self.0.length) }
    }
}

/// Memory that peers read and write when they like, so it is copied from and to.  Clones are the same memory.
#[derive(Clone)]
pub struct Region(Rc<Registered>);

impl Region {
    /// What a peer calls its first byte.
    pub fn address(&self) -> u64 {
        self.0.keys.get().addr
    }

    /// What a peer needs in addition to the address.
    pub fn rkey(&self) -> u32 {
        self.0.keys.get().rkey
    }

    pub fn handle(&self) -> sys::Handle {
        self.0.handle
    }

    /// Changes what peers may do; its key may be another then.
    pub fn set_access(&self, access: u32) -> Result<()> {
        let change = sys::MrChange { flags: sys::REREG_ACCESS, access, ..Default::default() };
        let mut keys = self.0.keys.get();
        check("rereg_mr", unsafe { sys::rereg_mr(self.0.handle, &change, &mut keys) })?;
        self.0.keys.set(keys);
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.0.length
    }

    /// Copies out what is there now.
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        let from = self.0.at(offset, into.len());
        for (i, byte) in into.iter_mut().enumerate() {
            *byte = unsafe { from.add(i).read_volatile() };
        }
    }

    /// Copies in.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        let to = self.0.at(offset, bytes.len());
        for (i, byte) in bytes.iter().enumerate() {
            unsafe { to.add(i).write_volatile(*byte) };
        }
    }

    /// The word at an offset that 8 divides, which peers read and write whole.
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset % 8 == 0, "offset {} of a word", offset);
        unsafe { &*(self.0.at(offset, 8) as *const AtomicU64) }
    }

    /// Reads a word, and then all that was written before it.
    pub fn load(&self, offset: usize) -> u64 {
        self.word(offset).load(Ordering::Acquire)
    }

    pub fn store(&self, offset: usize, value: u64) {
        self.word(offset).store(value, Ordering::Release)
    }
}

/// What a work request has: a buffer of its own, or its share of a region.
pub enum Memory {
    Buffer(Buffer),
    Region(Region),
}

impl From<Buffer> for Memory {
    fn from(buffer: Buffer) -> Memory {
        Memory::Buffer(buffer)
    }
}

impl From<&Region> for Memory {
    fn from(region: &Region) -> Memory {
        Memory::Region(region.clone())
    }
}

impl Memory {
    /// The buffer; an error for a region.
    pub fn into_buffer(self) -> Result<Buffer> {
        match self {
            Memory::Buffer(buffer) => Ok(buffer),
            Memory::Region(_) => Err(Error::of("into_buffer", "the request was posted with a region".into())),
        }
    }

    pub(crate) fn sge(&self, range: &Range<usize>) -> sys::Sge {
        let of = match self {
            Memory::Buffer(buffer) => &buffer.0,
            Memory::Region(region) => &*region.0,
        };
        assert!(range.start <= range.end, "{:?}", range);
        let at = of.at(range.start, range.end - range.start);
        sys::Sge { addr: at as u64, length: (range.end - range.start) as u32, lkey: of.keys.get().lkey }
    }
}
