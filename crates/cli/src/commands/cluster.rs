//! What all commands that talk to a cluster have in common.

use crate::failure::Failure;
use crate::properties::PropertyArguments;
use kohort::{Error, Settings};

/// Which cluster, and how to talk to it.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ClusterArguments {
    /// Where the cluster is; several separated by commas (Kafka: bootstrap.servers; default 127.0.0.1:9092).
    #[arg(long, short, value_name = "HOST:PORT")]
    bootstrap: Option<String>,
    /// The client's own name in the brokers' logs (Kafka: client.id; default kohort).
    #[arg(long, value_name = "NAME")]
    client_id: Option<String>,
    #[command(flatten)]
    properties: PropertyArguments,
}

impl ClusterArguments {
    /// The settings: the file, then -X, then `options` and the options of the command line itself.
    pub(crate) fn settings(&self, options: &[(&str, Option<String>)]) -> Result<Settings, Failure> {
        let mut properties = self.properties.read(Settings::PROPERTIES)?;
        let own = [
            ("bootstrap.servers", self.bootstrap.clone()),
            ("client.id", self.client_id.clone()),
        ];
        for (name, value) in own.iter().chain(options) {
            if let Some(value) = value {
                properties.insert((*name).to_owned(), value.clone());
            }
        }
        let mut settings = Settings::default();
        settings.set_all(&properties).map_err(Failure::usage)?;
        settings.check().map_err(Failure::usage)?;
        Ok(settings)
    }
}

/// A client's error as the end of a command: what is wrong with the settings is wrong usage.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Config(why) => Failure::Usage(why),
            other => Failure::failed(other),
        }
    }
}

/// How results are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Text,
    /// JSON lines for programs.
    Json,
}
