//! Every target with what is really said, whole, cut, changed at any place, spliced, and with nothing but noise.
//!
//! The allocator counts: what only decodes takes no more memory than a small multiple of what it was given. An allocator cannot be
//! written without `unsafe`, which the workspace denies; this test is the exception. The unsafe functions count, and pass everything
//! on to the system's allocator.
#![allow(unsafe_code, clippy::unwrap_used)]

use kohort_hostile::traffic::Traffic;
use kohort_hostile::{TARGETS, Target};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(more: isize) {
    // A thread that ends frees its locals after these; what it frees then is of no interest.
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + more);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
}

// SAFETY: all calls are passed on as they are to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: `at` came from `alloc` above, which is the system's.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes that were alive at once during `run`, beyond those before.
fn peak(run: impl FnOnce()) -> usize {
    let before = LIVE.get();
    PEAK.set(before);
    run();
    (PEAK.get() - before) as usize
}

/// A round trip holds the message twice in memory and twice as bytes: see `MULTIPLE` of the decoder's own test.
const MULTIPLE: usize = 2 * 48 + 8;
/// For an error, a header, and what a batch may unpack to whatever its size.
const FIXED: usize = 4 * 1_024;
const UNPACKED: usize = 4 * (1 << 16);

fn check(target: &Target, data: &[u8]) {
    let peak = peak(|| (target.run)(data));
    let unpacked = if target.name == "batches" {
        UNPACKED
    } else {
        0
    };
    let most = MULTIPLE * data.len() + FIXED + unpacked;
    assert!(
        !target.decodes || peak <= most,
        "{}: {peak} bytes of memory for {} bytes",
        target.name,
        data.len()
    );
}

/// A change to a seed.
#[derive(Clone, Debug)]
enum Change {
    Cut(Index),
    Put(Index, u8),
    Claim(Index, Vec<u8>),
    Remove(Index, u8),
    Splice(Index, Index, Index),
}

fn change() -> impl Strategy<Value = Change> {
    let claims = vec![
        vec![0x7f, 0xff, 0xff, 0xff],
        vec![0xff, 0xff, 0xff, 0xff],
        vec![0x80, 0, 0, 0],
        vec![0xff, 0xff, 0xff, 0xff, 0x0f],
        vec![0, 0, 0, 0],
        vec![0x7f, 0xff],
    ];
    prop_oneof![
        any::<Index>().prop_map(Change::Cut),
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Change::Put(at, byte)),
        (any::<Index>(), select(claims)).prop_map(|(at, claim)| Change::Claim(at, claim)),
        (any::<Index>(), any::<u8>()).prop_map(|(at, count)| Change::Remove(at, count)),
        any::<(Index, Index, Index)>()
            .prop_map(|(at, other, from)| Change::Splice(at, other, from)),
    ]
}

fn changed(seeds: &[Vec<u8>], which: Index, changes: Vec<Change>) -> Vec<u8> {
    let mut data = which.get(seeds).clone();
    for change in changes {
        let size = data.len().max(1);
        match change {
            Change::Cut(at) => data.truncate(at.index(size)),
            Change::Put(at, byte) => {
                if let Some(place) = data.get_mut(at.index(size)) {
                    *place = byte;
                }
            }
            Change::Claim(at, claim) => {
                for (place, byte) in data.iter_mut().skip(at.index(size)).zip(claim) {
                    *place = byte;
                }
            }
            Change::Remove(at, count) => {
                let at = at.index(size).min(data.len());
                data.drain(at..data.len().min(at + usize::from(count)));
            }
            Change::Splice(at, other, from) => {
                data.truncate(at.index(size));
                let other = other.get(seeds);
                data.extend_from_slice(&other[from.index(other.len().max(1)).min(other.len())..]);
            }
        }
    }
    data
}

fn seeds(traffic: &Traffic, target: &Target) -> Vec<Vec<u8>> {
    match traffic.seeds(target.name) {
        // Traces of decisions are said by nobody: any bytes are as good as others.
        [] => vec![Vec::new()],
        seeds => seeds.to_vec(),
    }
}

fn run(traffic: &Traffic, target: &'static Target, cases: u32) {
    let seeds = seeds(traffic, target);
    for seed in &seeds {
        check(target, seed);
    }
    let mutated = (any::<Index>(), proptest::collection::vec(change(), 1..6));
    let noise = proptest::collection::vec(any::<u8>(), 0..1_000);
    let data = prop_oneof![
        mutated.prop_map({
            let seeds = seeds.clone();
            move |(which, changes)| changed(&seeds, which, changes)
        }),
        noise,
    ];
    let mut runner = TestRunner::new(Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    });
    runner
        .run(&data, |data| {
            check(target, &data);
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{}: {error}", target.name));
    println!("{}: {} seeds, {cases} cases", target.name, seeds.len());
}

#[test]
fn hostile_bytes() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let traffic = runtime.block_on(Traffic::record()).unwrap();
    for target in TARGETS {
        assert!(
            !target.decodes || traffic.seeds(target.name).len() >= 3,
            "{}: nothing was said",
            target.name
        );
        run(&traffic, target, if target.decodes { 2_000 } else { 200 });
    }
}

/// What fuzzers have found, and was mended.
#[test]
fn what_was_found_stays_mended() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/found");
    let mut count = 0;
    for target in TARGETS {
        let Ok(files) = std::fs::read_dir(format!("{folder}/{}", target.name)) else {
            continue;
        };
        for file in files {
            check(target, &std::fs::read(file.unwrap().path()).unwrap());
            count += 1;
        }
    }
    assert!(count >= 2, "{folder} is gone");
}
