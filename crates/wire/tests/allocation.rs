//! No decoder takes more memory than a small multiple of the bytes that it was given, whatever counts and lengths they claim.
//!
//! Measured with an allocator that counts. An allocator cannot be written without `unsafe`, which the workspace denies; this test
//! is the exception. The unsafe functions do nothing but count and pass everything on to the system's allocator.
#![allow(unsafe_code, clippy::unwrap_used, missing_docs)]

use bytes::{Bytes, BytesMut};
use kohort_wire::api::{ApiRequest, decode, encode};
use kohort_wire::embedded::{Assignment, Subscription};
use kohort_wire::messages::*;
use kohort_wire::primitives::WireType;
use kohort_wire::records::{Batch, BatchBuilder, Compression, HEADER_SIZE, batches};
use proptest::prelude::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

fn count(more: usize, less: usize) {
    // A thread that ends frees its locals after these; what it frees then is of no interest.
    let _ = LIVE.try_with(|live| {
        live.set((live.get() + more).saturating_sub(less));
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
}

// SAFETY: all calls are passed on as they are to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: `at` came from `alloc` above, which is the system's.
        unsafe { System.dealloc(at, layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // As if the bytes were moved: both blocks are alive for a moment.
        count(size, 0);
        count(0, layout.size());
        // SAFETY: as in `dealloc`.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes that were alive at once during `run`, beyond those before.
fn peak(run: impl FnOnce()) -> usize {
    let before = LIVE.get();
    PEAK.set(before);
    run();
    PEAK.get() - before
}

/// Bytes of memory for each byte of a message. An empty string is one byte on the wire and 24 in memory, and while a vector
/// grows the old one is there for a moment.
const MULTIPLE: usize = 48;
/// For small things such as an error, however short the message.
const FIXED: usize = 512;

/// Bytes after which a count is likely to be read, followed by much that elements can be made of.
fn claims(body: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let counts: [&[u8]; 8] = [
        &[0x7f, 0xff, 0xff, 0xff],
        &[0x80, 0, 0, 0],
        &[0x7f, 0xff],
        &[0, 0, 4, 0],
        &[0xff, 0xff, 0xff, 0xff, 0x07],
        &[0xff, 0xff, 0xff, 0xff, 0x0f],
        &[0x81, 0x08],
        &[0xff, 0xff, 0x3f],
    ];
    (0..=body.len()).flat_map(move |at| {
        counts.into_iter().flat_map(move |count| {
            [(0, 0), (0, 2_000), (1, 2_000)].map(|(filler, room)| {
                let mut bytes = body[..at].to_vec();
                bytes.extend_from_slice(count);
                bytes.extend(std::iter::repeat_n(filler, room));
                bytes
            })
        })
    })
}

fn check<R: ApiRequest, T: WireType>(version: i16, bytes: Bytes) {
    let (size, copy) = (bytes.len(), bytes.clone());
    let peak = peak(|| {
        let _ = decode::<R, T>(bytes, version);
    });
    assert!(
        peak <= MULTIPLE * size + FIXED,
        "{} v{version}: {peak} bytes for {size}: {:?}",
        std::any::type_name::<T>(),
        &copy[..size.min(40)],
    );
}

fn check_claims<R: ApiRequest, T: WireType + Default>() {
    for version in R::VERSIONS.0..=R::VERSIONS.1 {
        let body = encode::<R, T>(&T::default(), version, BytesMut::new()).unwrap();
        for bytes in claims(&body) {
            check::<R, T>(version, bytes.into());
        }
    }
}

macro_rules! for_all_apis {
    ($check:ident $(, $argument:expr)*) => {
        for_all_apis!(@each $check ($($argument),*)
            AlterConfigsRequest ApiVersionsRequest CreatePartitionsRequest CreateTopicsRequest DeleteGroupsRequest
            DeleteRecordsRequest DeleteTopicsRequest DescribeClusterRequest DescribeConfigsRequest DescribeGroupsRequest
            FetchRequest FindCoordinatorRequest HeartbeatRequest IncrementalAlterConfigsRequest InitProducerIdRequest
            JoinGroupRequest LeaveGroupRequest ListGroupsRequest ListOffsetsRequest ListPartitionReassignmentsRequest
            MetadataRequest OffsetCommitRequest OffsetDeleteRequest OffsetFetchRequest OffsetForLeaderEpochRequest
            ProduceRequest SaslAuthenticateRequest SaslHandshakeRequest SyncGroupRequest
        )
    };
    (@each $check:ident $arguments:tt $($request:ident)*) => {
        $(for_all_apis!(@one $check $request $arguments);)*
    };
    (@one $check:ident $request:ident ($($argument:expr),*)) => {
        $check::<$request, $request>($($argument),*);
        $check::<$request, <$request as ApiRequest>::Response>($($argument),*);
    };
}

#[test]
fn counts_that_lie_cost_nothing() {
    for_all_apis!(check_claims);
}

fn check_all_versions<R: ApiRequest, T: WireType>(bytes: &Bytes) {
    for version in R::VERSIONS.0..=R::VERSIONS.1 {
        check::<R, T>(version, bytes.clone());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn random_bytes_cost_little(
        bytes in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..500),
            proptest::collection::vec(0u8..4, 0..500),
            proptest::collection::vec(prop_oneof![Just(0u8), Just(1), Just(2), Just(0x7f), Just(0xff)], 0..500),
        ],
    ) {
        let bytes = Bytes::from(bytes);
        for_all_apis!(check_all_versions, &bytes);
    }
}

#[test]
fn members_that_lie_to_each_other_cost_nothing() {
    let (subscription, assignment) = (
        Subscription::default().encode(),
        Assignment::default().encode(),
    );
    for bytes in claims(&subscription).chain(claims(&assignment)) {
        let bytes = Bytes::from(bytes);
        let size = bytes.len();
        let peak = peak(|| {
            let _ = Subscription::decode(bytes.clone());
            let _ = Assignment::decode(bytes);
        });
        assert!(peak <= MULTIPLE * size + FIXED, "{peak} bytes for {size}");
    }
}

/// Reads all records of `batch`, one at a time, as a consumer that keeps none of them.
fn read(batch: &Batch, limit: usize) {
    if let Ok(records) = batch.records(limit) {
        for record in records {
            let _ = record;
        }
    }
}

fn batch(codec: Compression, payload: &[u8]) -> Bytes {
    let mut builder = BatchBuilder::new(codec);
    builder.push(0, None, Some(b"v"), &[]).unwrap();
    let mut bytes = BytesMut::from(&builder.build().unwrap()[..HEADER_SIZE]);
    bytes.extend_from_slice(payload);
    let length = (bytes.len() - 12) as i32;
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    bytes.freeze()
}

#[test]
fn records_that_lie_cost_nothing() {
    let mut builder = BatchBuilder::new(Compression::None);
    builder.push(0, Some(b"k"), Some(b"v"), &[]).unwrap();
    let valid = builder.build().unwrap();
    for bytes in claims(&valid) {
        let bytes = Bytes::from(bytes);
        let size = bytes.len();
        let peak = peak(|| {
            batches(bytes)
                .flatten()
                .for_each(|batch| read(&batch, 1 << 20))
        });
        assert!(peak <= MULTIPLE * size + FIXED, "{peak} bytes for {size}");
    }
    // The header's length is put right, so that the claims reach the records.
    for payload in claims(&valid[HEADER_SIZE..]) {
        let size = payload.len();
        let mut bytes = batch(Compression::None, &payload);
        let batch = Batch::split_from(&mut bytes).unwrap().unwrap();
        let peak = peak(|| read(&batch, 1 << 20));
        assert!(peak <= MULTIPLE * size + FIXED, "{peak} bytes for {size}");
    }
}

#[test]
fn decompression_costs_what_comes_out_and_a_decoders_tables() {
    const LIMIT: usize = 1 << 20;
    let zeros = vec![0; 16 << 20];
    for codec in Compression::ALL.into_iter().skip(1) {
        // What the decoder needs for itself; zstd's has tables and blocks of 128 KiB.
        let tables = match codec {
            Compression::Zstd => 1 << 20,
            Compression::Gzip => 1 << 16,
            _ => FIXED,
        };
        let mut builder = BatchBuilder::new(codec);
        builder.push(0, None, Some(&zeros), &[]).unwrap();
        let bomb = builder.build().unwrap();
        let payload = &bomb[HEADER_SIZE..];
        let most = peak(|| assert!(codec.decompress(payload, LIMIT).is_err()));
        assert!(most <= 4 * LIMIT + tables, "{codec}: {most} bytes");

        // Frames that announce much and hold nothing.
        let head = &payload[..payload.len().min(24)];
        for payload in claims(head) {
            let size = payload.len();
            let mut out = 0;
            let most = peak(|| {
                out = codec
                    .decompress(&payload, LIMIT)
                    .map_or(0, |plain| plain.len());
            });
            let allowed = 4 * out + 300 * size + tables;
            assert!(
                most <= allowed,
                "{codec}: {most} bytes for {size} that hold {out}"
            );
        }
    }
}
