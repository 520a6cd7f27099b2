//! What the programs that run on share: a runtime, and the word to stop.

use std::future::Future;

use crate::error::Error;

/// Runs a future to its end on this thread.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.map_err(no_runtime)?.block_on(work)
}

/// Runs a server on threads of its own.
pub(super) fn serve<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    runtime.map_err(no_runtime)?.block_on(work)
}

/// Completes when SIGINT or SIGTERM comes.
pub(super) async fn told_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        tracing::warn!("signals cannot be had; stop this process by killing it");
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    tracing::info!("stopping");
}

fn no_runtime(error: std::io::Error) -> Error {
    Error::System {
        what: "start a thread",
        error,
    }
}
