// SPDX-License-Identifier: Apache-2.0
//! Lines of output: one JSON object each, written by hand.

use std::fmt::{Display, Write as _};
use std::io::{self, Write as _};

use sea_streamer_types::{MessageHeader, Timestamp};

use crate::Failure;

/// Prints one line and sends it off, since somebody may wait for it.
pub fn print(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes())?;
    out.write_all(b"\n")?;
    out.flush()
}

/// The fields of a record's head. Keys need no escaping.
pub fn head(h: &MessageHeader) -> String {
    format!(
        r#""key":"{}","shard":{},"sequence":{},"time":{}"#,
        h.stream_key().name(),
        h.shard_id().id(),
        h.sequence(),
        millis(h.timestamp()),
    )
}

pub fn record(h: &MessageHeader, payload: &[u8]) -> String {
    format!(r#"{{{},"payload":"{}"}}"#, head(h), to_hex(payload))
}

/// The last line of a reader: why it ended.
pub fn end(why: &str, error: impl Display) -> String {
    format!(
        r#"{{"end":"{why}","error":{}}}"#,
        quoted(&error.to_string())
    )
}

pub fn millis(t: &Timestamp) -> i128 {
    t.unix_timestamp_nanos() / 1_000_000
}

pub fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => write!(out, "\\u{:04x}", c as u32).expect("a String takes it"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = String::with_capacity(bytes.len() * 2);
    for b in bytes {
        out.push(DIGITS[(b >> 4) as usize] as char);
        out.push(DIGITS[(b & 15) as usize] as char);
    }
    out
}

pub fn from_hex(text: &str) -> Result<Vec<u8>, Failure> {
    if text.len() % 2 != 0 {
        return Err("an odd number of hex digits".into());
    }
    let digit = |b: u8| (b as char).to_digit(16).ok_or("no hex digit");
    let mut out = Vec::with_capacity(text.len() / 2);
    for pair in text.as_bytes().chunks(2) {
        out.push((digit(pair[0])? << 4 | digit(pair[1])?) as u8);
    }
    Ok(out)
}
