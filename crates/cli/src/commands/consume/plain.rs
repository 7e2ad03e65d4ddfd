//! Reading without a group.

use super::output::{Failed, Output};
use super::{Arguments, Order, PATIENCE, unless_closed, until, waiting_for_records};
use crate::failure::Failure;
use crate::stdout::unwritten;
use kohort::{Error, Reader, Settings};
use std::time::Instant;
use tokio::sync::mpsc;

pub(super) async fn run(
    arguments: Arguments,
    settings: Settings,
    mut output: Output,
    mut orders: mpsc::UnboundedReceiver<Order>,
) -> Result<(), Failure> {
    if arguments.pattern.is_some() {
        return Err(Failure::usage("--pattern needs a --group"));
    }
    let connecting = connect(&arguments.topic, settings);
    let Some(connected) = unless_closed(connecting, &mut orders).await else {
        return Ok(());
    };
    let mut reader = connected?;
    let mut left = arguments.count.unwrap_or(u64::MAX);
    let mut mention_waiting = (!arguments.at_end).then(|| Instant::now() + PATIENCE);
    let ended = loop {
        if left == 0 {
            break Ok(());
        }
        let records = tokio::select! {
            biased;
            order = orders.recv() => match order {
                Some(Order::Close | Order::CloseNow) | None => break Ok(()),
                Some(_) => continue,
            },
            () = until(output.due()) => {
                output.tell_records().map_err(unwritten)?;
                continue;
            }
            () = until(mention_waiting) => {
                mention_waiting = None;
                eprintln!("{}", waiting_for_records(&arguments));
                continue;
            }
            records = reader.next() => records,
        };
        if matches!(records, Ok(Some(_))) {
            mention_waiting = None;
        }
        match records {
            Ok(Some(records)) => match output.records(&records, left) {
                Ok(count) => left -= count,
                Err(Failed::Output(error)) => return Err(unwritten(error)),
                Err(Failed::Records(error)) => break Err(error),
            },
            Ok(None) if arguments.at_end => break Ok(()),
            Ok(None) => {}
            Err(error) => break Err(error),
        }
    };
    output.tell_records().map_err(unwritten)?;
    if let Err(error) = &ended {
        output.failure(error).map_err(unwritten)?;
    }
    output.event("closed", &[]).map_err(unwritten)?;
    ended.map_err(|error: Error| Failure::failed(error))
}

async fn connect(topics: &[String], settings: Settings) -> Result<Reader, Error> {
    let mut reader = Reader::connect(settings).await?;
    for topic in topics {
        reader.read_topic(topic).await?;
    }
    Ok(reader)
}
