//! How a command ends when it does not end well.

use std::fmt::Display;
use std::process::ExitCode;

/// Why a command ended without having done its work: one clear sentence.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It failed: exit status 1.
    Failed(String),
    /// It was asked for something that makes no sense: exit status 2.
    Usage(String),
    /// It failed and has already said so: exit status 1.
    #[allow(dead_code, reason = "for commands that print their own verdict")]
    Told,
}

impl Failure {
    /// It failed.
    pub(crate) fn failed(why: impl Display) -> Self {
        Failure::Failed(why.to_string())
    }

    /// Wrong usage.
    pub(crate) fn usage(why: impl Display) -> Self {
        Failure::Usage(why.to_string())
    }

    /// Says it on stderr and gives the exit status.
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Failure::Failed(why) => {
                eprintln!("kohort: {why}");
                ExitCode::from(1)
            }
            Failure::Usage(why) => {
                eprintln!("kohort: {why}");
                ExitCode::from(2)
            }
            Failure::Told => ExitCode::from(1),
        }
    }
}
