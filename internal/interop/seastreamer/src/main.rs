// SPDX-License-Identifier: Apache-2.0
//! The SeaStreamer file client as a program: what it prints and writes is what
//! the client's own reader and writer make of a file. See ../../README.md.

mod args;
mod dump;
mod line;
mod read;
mod write;

use std::process::ExitCode;

use args::{Args, Command};

pub type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    // One thread: the client's task and its consumer then take turns, so that a
    // seek reaches a reader that has not begun.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let done = Args::parse(std::env::args().skip(1)).and_then(|args| {
        runtime?.block_on(async {
            match args.command {
                Command::Write => write::run(&args).await,
                Command::Replay | Command::Tail => read::run(&args).await,
                Command::Dump => dump::run(&args).await,
            }
        })
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}
