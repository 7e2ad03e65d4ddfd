//! Background tasks whose death must not go unnoticed.

use crate::error::Error;
use std::any::Any;
use std::future::Future;

/// Runs a task; if it panics, `died` hears the error that says so. (Where the runtime itself ends, nobody is left to hear.)
pub(crate) fn spawn_watched<T>(task: T, died: impl FnOnce(Error) + Send + 'static)
where
    T: Future<Output = ()> + Send + 'static,
{
    let task = tokio::spawn(task);
    tokio::spawn(async move {
        if let Err(ended) = task.await
            && let Ok(panic) = ended.try_into_panic()
        {
            died(Error::Panicked(words(panic.as_ref()).to_owned()));
        }
    });
}

/// What `panic!` was given.
fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("it left no words")
}
