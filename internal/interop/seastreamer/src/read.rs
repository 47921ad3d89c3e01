// SPDX-License-Identifier: Apache-2.0

use sea_streamer_file::{
    AutoStreamReset, FileConnectOptions, FileConsumerOptions, FileErr, FileId, FileStreamer,
    SEA_STREAMER_WILDCARD, SeekTarget,
};
use sea_streamer_types::{
    Buffer, Consumer, ConsumerMode, ConsumerOptions, Message, StreamErr, StreamKey, Streamer,
    Timestamp,
};

use crate::{
    Failure,
    args::{Args, Command},
    line,
};

/// Prints records by the client's consumer, and a last line that says why it
/// ended. A tail says "ready" first, when its place in the file is fixed.
pub async fn run(args: &Args) -> Result<(), Failure> {
    let uri = FileId::new(args.path.as_str()).to_streamer_uri()?;
    let mut options = FileConnectOptions::default();
    // A client's reader that meets the end of the file before its consumer does
    // takes with it whatever it has read ahead.
    options.set_prefetch_message(0);
    let streamer = FileStreamer::connect(uri, options).await?;
    let tail = args.command == Command::Tail;
    let mut options = FileConsumerOptions::new(ConsumerMode::RealTime);
    options.set_live_streaming(tail);
    options.set_auto_stream_reset(if tail && !args.beginning {
        AutoStreamReset::Latest
    } else {
        AutoStreamReset::Earliest
    });
    let key = args.key.as_deref().unwrap_or(SEA_STREAMER_WILDCARD);
    let mut consumer = streamer
        .create_consumer(&[StreamKey::new(key)?], options)
        .await?;
    let target = match (args.sequence, args.time) {
        (Some(n), _) => Some(SeekTarget::SeqNo(n)),
        (_, Some(ms)) => Some(SeekTarget::Timestamp(Timestamp::from_unix_timestamp_nanos(
            ms as i128 * 1_000_000,
        )?)),
        _ => None,
    };
    if let Some(target) = target {
        if let Err(failure) = consumer.seek_to(target).await {
            line::print(&line::end("seek", failure))?;
            return Ok(());
        }
    }
    if tail {
        line::print(r#"{"ready":true}"#)?;
    }
    loop {
        match consumer.next().await {
            Ok(m) => line::print(&line::record(m.header(), m.message().as_bytes()))?,
            Err(failure) => {
                let why = match &failure {
                    StreamErr::Backend(FileErr::NotEnoughBytes) => "eof",
                    StreamErr::Backend(FileErr::StreamEnded) => "eos",
                    _ => "error",
                };
                line::print(&line::end(why, failure))?;
                return Ok(());
            }
        }
    }
}
