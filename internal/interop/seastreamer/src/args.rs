// SPDX-License-Identifier: Apache-2.0

use crate::Failure;

pub const USAGE: &str = "usage:
  write PATH [--beacon BYTES] [--eos] [--limit BYTES]
  replay PATH [--key KEY] [--sequence N | --time MS]
  tail PATH [--key KEY] [--beginning]
  dump PATH";

#[derive(Clone, Copy, PartialEq)]
pub enum Command {
    Write,
    Replay,
    Tail,
    Dump,
}

pub struct Args {
    pub command: Command,
    pub path: String,
    pub key: Option<String>,
    pub beacon: Option<u32>,
    pub limit: Option<u64>,
    pub sequence: Option<u64>,
    pub time: Option<i64>,
    pub eos: bool,
    pub beginning: bool,
}

impl Args {
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let command = match words.next().as_deref() {
            Some("write") => Command::Write,
            Some("replay") => Command::Replay,
            Some("tail") => Command::Tail,
            Some("dump") => Command::Dump,
            _ => return Err(USAGE.into()),
        };
        let path = words.next().ok_or(USAGE)?;
        // The client takes its path out of a URL.
        let path = std::path::absolute(path)?;
        let mut args = Args {
            command,
            path: path.to_str().ok_or("the path is not UTF-8")?.to_owned(),
            key: None,
            beacon: None,
            limit: None,
            sequence: None,
            time: None,
            eos: false,
            beginning: false,
        };
        while let Some(flag) = words.next() {
            let mut value = || words.next().ok_or(format!("{flag} has no value"));
            match flag.as_str() {
                "--key" => args.key = Some(value()?),
                "--beacon" => args.beacon = Some(value()?.parse()?),
                "--limit" => args.limit = Some(value()?.parse()?),
                "--sequence" => args.sequence = Some(value()?.parse()?),
                "--time" => args.time = Some(value()?.parse()?),
                "--eos" => args.eos = true,
                "--beginning" => args.beginning = true,
                _ => return Err(format!("unknown flag {flag}\n{USAGE}").into()),
            }
        }
        Ok(args)
    }
}
