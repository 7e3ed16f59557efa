//! Errors, and results that become them.

use super::sys;
use std::fmt;

/// The failure of a host function, of a work request or of an expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Of the ABI, for example "create_ep".
    pub function: &'static str,
    /// Linux's number; 0 when it is not about one.
    pub errno: u32,
    /// The sentence.
    pub text: String,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error that no host function returned.
    pub(crate) fn of(function: &'static str, text: String) -> Error {
        Error { function, errno: 0, text }
    }

    /// The name of the errno: "EINVAL".
    pub fn name(&self) -> &'static str {
        sys::errno_name(self.errno)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: ", self.function)?;
        match (self.text.as_str(), self.name()) {
            ("", "") => write!(f, "error {}", self.errno),
            ("", name) => f.write_str(name),
            (text, _) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

/// The result of a host function: what it returned, or the error with the host's sentence.
pub(crate) fn check(function: &'static str, result: i32) -> Result<u32> {
    if result >= 0 {
        return Ok(result as u32);
    }
    let mut text = [0u8; 512];
    let length = unsafe { sys::error_text(text.as_mut_ptr(), text.len() as u32) };
    let text = String::from_utf8_lossy(&text[..length.max(0) as usize]).into_owned();
    Err(Error { function, errno: result.unsigned_abs(), text })
}
