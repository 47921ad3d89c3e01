// SPDX-License-Identifier: Apache-2.0

use std::num::NonZeroU32;

use sea_streamer_file::{BeaconReader, FileErr, FileId, MessageSource, StreamMode};
use sea_streamer_types::{Buffer, Message};

use crate::{Failure, args::Args, line};

/// Prints the header, all records, end marks and what is behind them included,
/// and all beacons of a file, by the client's parser.
pub async fn run(args: &Args) -> Result<(), Failure> {
    let id = FileId::new(args.path.as_str());
    let mut source = MessageSource::new(id, StreamMode::Replay).await?;
    let h = source.file_header();
    line::print(&format!(
        r#"{{"name":{},"created":{},"interval":{}}}"#,
        line::quoted(&h.file_name),
        line::millis(&h.created_at),
        h.beacon_interval
    ))?;
    let ended = loop {
        match source.next().await {
            Ok(m) => line::print(&line::record(
                m.message.header(),
                m.message.message().as_bytes(),
            ))?,
            Err(FileErr::NotEnoughBytes) => break line::end("eof", ""),
            Err(failure) => break line::end("error", failure),
        }
    };
    for at in 1..=source.max_beacons() {
        let at = NonZeroU32::new(at).expect("counted from one");
        let beacon = match source.survey(at).await {
            Ok(beacon) => beacon,
            Err(FileErr::NotEnoughBytes) => break, // due, or half of it
            Err(failure) => return Err(failure.into()),
        };
        let markers: Vec<String> = beacon
            .items
            .iter()
            .map(|m| {
                format!(
                    r#"{{{},"checksum":{}}}"#,
                    line::head(&m.header),
                    m.running_checksum.0
                )
            })
            .collect();
        line::print(&format!(
            r#"{{"beacon":{at},"remaining":{},"markers":[{}]}}"#,
            beacon.remaining_messages_bytes,
            markers.join(",")
        ))?;
    }
    line::print(&ended)?;
    Ok(())
}
