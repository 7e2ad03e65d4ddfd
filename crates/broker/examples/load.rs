//! Puts a load on a running broker and says what it cost: a join storm, then heartbeats.
//!
//!     load ADDRESS MEMBERS BEATS [PID]        PID: the broker's process, for its CPU time and memory

#![allow(clippy::unwrap_used)]

use bytes::BytesMut;
use kohort_wire::messages::*;
use kohort_wire::{ApiRequest, frame};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

struct Connection {
    stream: TcpStream,
    buffer: BytesMut,
}

impl Connection {
    async fn ask<R: ApiRequest>(&mut self, version: i16, request: &R) -> R::Response {
        let sent = frame::request(request, version, 1, Some("load")).unwrap();
        self.stream.write_all(&sent).await.unwrap();
        loop {
            if let Some(answer) = frame::split(&mut self.buffer, 1 << 30).unwrap() {
                return frame::read_response::<R>(answer, version).unwrap().1;
            }
            self.buffer.reserve(1 << 12);
            assert_ne!(self.stream.read_buf(&mut self.buffer).await.unwrap(), 0);
        }
    }
}

/// Joins until a generation holds, beats, and gives (generation, rounds, when stable, how long the beats took).
async fn member(
    address: String,
    beats: usize,
    members: usize,
    settled: Arc<AtomicUsize>,
) -> (i32, u32, Instant, Duration) {
    let stream = TcpStream::connect(&address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut connection = Connection {
        stream,
        buffer: BytesMut::new(),
    };
    let mut join = JoinGroupRequest {
        group_id: "storm".into(),
        session_timeout_ms: 60_000,
        rebalance_timeout_ms: 60_000,
        protocol_type: "consumer".into(),
        protocols: vec![JoinGroupProtocol {
            name: "range".into(),
            metadata: vec![7; 100].into(),
        }],
        ..Default::default()
    };
    let mut rounds = 0;
    loop {
        let joined = connection.ask(9, &join).await;
        join.member_id.clone_from(&joined.member_id);
        if joined.error_code.number() == 79 {
            continue;
        }
        assert!(joined.error_code.is_none(), "{}", joined.error_code);
        rounds += 1;
        let leads = joined.leader == joined.member_id;
        let assignment = |member: &JoinGroupResponseMember| SyncGroupAssignment {
            member_id: member.member_id.clone(),
            assignment: vec![9; 50].into(),
        };
        let sync = SyncGroupRequest {
            group_id: "storm".into(),
            generation_id: joined.generation_id,
            member_id: joined.member_id.clone(),
            protocol_type: Some("consumer".into()),
            protocol_name: Some("range".into()),
            assignments: if leads {
                joined.members.iter().map(assignment).collect()
            } else {
                Vec::new()
            },
            ..Default::default()
        };
        let synced = connection.ask(5, &sync).await;
        if !synced.error_code.is_none() {
            continue;
        }
        let stable = Instant::now();
        let beat = HeartbeatRequest {
            group_id: "storm".into(),
            generation_id: joined.generation_id,
            member_id: joined.member_id.clone(),
            ..Default::default()
        };
        settled.fetch_add(1, Relaxed);
        let mut held = true;
        while settled.load(Relaxed) < members && held {
            tokio::time::sleep(Duration::from_millis(5)).await;
            held = connection.ask(4, &beat).await.error_code.is_none();
        }
        if !held {
            settled.fetch_sub(1, Relaxed);
            continue;
        }
        let begun = Instant::now();
        for _ in 0..beats {
            assert!(connection.ask(4, &beat).await.error_code.is_none());
        }
        return (joined.generation_id, rounds, stable, begun.elapsed());
    }
}

fn broker(pid: &str) -> (f64, u64) {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    (ticks * 10.0, fields[21].parse::<u64>().unwrap() * 4)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let (address, members, beats) = (
        &arguments[1],
        arguments[2].parse::<usize>().unwrap(),
        arguments[3].parse::<usize>().unwrap(),
    );
    let before = arguments.get(4).map(|pid| broker(pid));
    let began = Instant::now();
    let settled = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..members)
        .map(|_| {
            tokio::spawn(member(
                address.clone(),
                beats,
                members,
                Arc::clone(&settled),
            ))
        })
        .collect();
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.push(task.await.unwrap());
    }
    let stable = outcomes.iter().map(|outcome| outcome.2).max().unwrap();
    let generation = outcomes.iter().map(|outcome| outcome.0).max().unwrap();
    let rounds: u32 = outcomes.iter().map(|outcome| outcome.1).sum();
    println!(
        "{members} members stable after {:.1} ms, generation {generation}, {rounds} joins answered",
        (stable - began).as_secs_f64() * 1e3
    );
    println!(
        "{} heartbeats in {:.1} ms",
        members * beats,
        outcomes
            .iter()
            .map(|outcome| outcome.3)
            .max()
            .unwrap()
            .as_secs_f64()
            * 1e3
    );
    if let (Some((cpu, memory)), Some(pid)) = (before, arguments.get(4)) {
        let after = broker(pid);
        println!(
            "broker: {:.0} ms of CPU, memory {memory} -> {} KiB",
            after.0 - cpu,
            after.1
        );
    }
}
