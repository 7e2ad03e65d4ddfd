//! Hostile bytes: every reader of bytes that came from somebody else, as a function of bytes that must not panic. The same functions are
//! run by the property tests here, from seeds of real traffic, and by the fuzzers in `fuzz/`.

mod codec;
mod connection;
mod decisions;
mod machines;
pub mod traffic;

/// A reader, and where its name in `fuzz/` comes from.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Reads; panics if something is wrong with the reader.
    pub run: fn(&[u8]),
    /// Whether it only decodes, so that its memory must be a small multiple of what it is given.
    pub decodes: bool,
}

/// All of them.
pub const TARGETS: &[Target] = &[
    target("requests", codec::requests, true),
    target("responses", codec::responses, true),
    target("batches", codec::batches, true),
    target("embedded", codec::embedded, true),
    target("offsets", codec::offsets, true),
    target("connection", connection::connection, false),
    target("coordinator", machines::coordinator, false),
    target("member", machines::member, false),
];

const fn target(name: &'static str, run: fn(&[u8]), decodes: bool) -> Target {
    Target { name, run, decodes }
}

/// The target with this name.
///
/// # Panics
/// If there is none.
pub fn run(name: &str, data: &[u8]) {
    let Some(target) = TARGETS.iter().find(|target| target.name == name) else {
        panic!("expected the name of a target, got {name:?}");
    };
    (target.run)(data);
}
