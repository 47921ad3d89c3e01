// SPDX-License-Identifier: Apache-2.0

use std::io;

use sea_streamer_file::{FileConnectOptions, FileId, FileStreamer};
use sea_streamer_types::{Producer, StreamKey, Streamer};

use crate::{Failure, args::Args, line};

/// Writes a record for each line "KEY HEX" of standard input by the client's
/// producer, as a service does: flushed each, and the head printed then.
pub async fn run(args: &Args) -> Result<(), Failure> {
    let mut options = FileConnectOptions::default();
    options.set_create_if_not_exists(true);
    options.set_end_with_eos(args.eos);
    if let Some(interval) = args.beacon {
        options.set_beacon_interval(interval)?;
    }
    if let Some(limit) = args.limit {
        options.set_file_size_limit(limit);
    }
    let uri = FileId::new(args.path.as_str()).to_streamer_uri()?;
    let streamer = FileStreamer::connect(uri, options).await?;
    let mut producer = streamer.create_generic_producer(Default::default()).await?;
    for text in io::stdin().lines() {
        let text = text?;
        let (key, hex) = text.split_once(' ').ok_or("a line is KEY HEX")?;
        let sent = producer.send_to(&StreamKey::new(key)?, line::from_hex(hex)?.as_slice())?;
        let head = sent.await?;
        producer.flush().await?;
        line::print(&format!("{{{}}}", line::head(&head)))?;
    }
    streamer.disconnect().await?;
    Ok(())
}
