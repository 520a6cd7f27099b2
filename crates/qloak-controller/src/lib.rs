//! The SDN controller: intent, plan, observed.
//!
//! ```text
//!   operator (cli, dashboard) -> north (access, audit) -> intent -> plan -> south -> node
//!                                  ^                         |
//!                                  '------- observed <-------'   state flows back by telemetry only
//! ```
//! An operator says what a channel of a link shall be; the controller tells both ends, and keeps
//! telling them until they are. It survives its own restart (store), the nodes' restarts (reconcile),
//! and it writes down who asked what (audit). What always holds:
//! - It cannot name a key: of our crates it imports only the words (`qloak-api`) and the door.
//! - Both ends of a channel are told, or neither: a refusal at one end undoes the other.
//! - The data path never waits for it. Without a controller the nodes go on as they were told.
//!
//! Routes over several links, a signed library and other southbound protocols are left to later work;
//! the seams are `topology` and `south::Southbound`.

pub mod change;
pub mod config;
pub mod controller;
mod error;
mod identity;
pub mod intent;
pub mod limits;
mod metrics;
pub mod north;
pub mod observed;
pub mod plan;
mod poll;
mod push;
mod reconcile;
pub mod south;
pub mod store;
pub mod topology;

use std::{future::Future, path::Path, sync::Arc};

use tokio::sync::watch;

pub use config::Config;
pub use error::Error;

use controller::Controller;

/// Runs a controller until `shutdown` completes.
///
/// # Errors
/// The configuration is not valid, a certificate or the database cannot be used, or a listener cannot
/// be opened. Each text says which, whose fault it is and what to do.
pub async fn run(config_path: &Path, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
    let config = Config::read(config_path)?;
    let tls = qloak_door::server_config(&config.tls)?;
    identity::check(&config.tls.cert)?;
    let door = qloak_door::Door::bind(config.listen, tls).await?;
    let dashboard = match config.dashboard {
        None => None,
        Some(listen) => {
            let listener = tokio::net::TcpListener::bind(listen).await;
            Some(listener.map_err(|source| Error::Dashboard { listen, source })?)
        }
    };
    let unusable = |error: store::StoreError| Error::Store {
        path: config.store.clone(),
        what: error.to_string(),
    };
    let _claim = store::claim(&config.store).map_err(unusable)?;
    let store = store::Store::open(&config.store).map_err(unusable)?;
    let dial = Box::new(south::RestDial::new(config.tls.clone()));
    let controller = Controller::open(store, config.seed.clone(), dial, config.poll_interval)
        .map_err(unusable)?;
    controller.align_pollers();
    tracing::info!(north = %config.listen, dashboard = ?config.dashboard, "the controller runs");

    let north = async {
        door.serve(north::north_router(&controller), closed(&controller))
            .await;
        Ok(())
    };
    let page = serve_dashboard(&controller, dashboard);
    // Both end when the controller closes; a dashboard that fails takes the north door with it.
    let doors = async { tokio::try_join!(north, page).map(|_| ()) };
    tokio::pin!(doors);
    let ended = tokio::select! {
        ended = &mut doors => ended,
        () = shutdown => {
            controller.close();
            doors.await
        }
    };
    controller.close();
    ended
}

async fn serve_dashboard(
    controller: &Arc<Controller>,
    listener: Option<tokio::net::TcpListener>,
) -> Result<(), Error> {
    let Some(listener) = listener else {
        return Ok(());
    };
    let listen = listener.local_addr();
    let served = axum::serve(
        north::Loopback::new(listener),
        north::dashboard_router(controller),
    )
    .with_graceful_shutdown(closed(controller));
    let overdue = async {
        closed(controller).await;
        tokio::time::sleep(limits::CLOSING_TIME_MAX).await;
    };
    tokio::select! {
        served = served => served.map_err(|source| Error::Dashboard {
            listen: listen.unwrap_or_else(|_| ([127, 0, 0, 1], 0).into()),
            source,
        }),
        // A request that never ends must not keep the program from ending.
        () = overdue => Ok(()),
    }
}

fn closed(controller: &Arc<Controller>) -> impl Future<Output = ()> + Send + 'static {
    let mut closing: watch::Receiver<bool> = controller.closing();
    async move {
        // If the controller is gone, so is the reason to stay open.
        let _ = closing.wait_for(|closing| *closing).await;
    }
}
