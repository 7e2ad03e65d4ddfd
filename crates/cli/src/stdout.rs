//! Standard output, which may be closed or full: the end of a command, not a panic.

use crate::failure::Failure;
use std::fmt::Display;
use std::io::{self, Write};

/// Writes one line.
pub(crate) fn line(line: impl Display) -> Result<(), Failure> {
    let mut to = io::stdout().lock();
    writeln!(to, "{line}").map_err(unwritten)
}

/// Why a command ends that cannot write: without words if nobody reads any more.
pub(crate) fn unwritten(error: io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Failure::Told;
    }
    Failure::failed(format!(
        "cannot write to standard output: {error}; see to where it goes"
    ))
}
