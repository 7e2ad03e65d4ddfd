//! The `kohort` command line.

fn main() {}
