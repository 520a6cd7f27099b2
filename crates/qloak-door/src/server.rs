//! The listening side: accept, shake hands, learn who it is, hand requests to an axum router.
//!
//! ```text
//! accept -> (a place is free) -> TLS handshake -> Caller -> HTTP/1.1 or HTTP/2 -> router
//! ```
//!
//! What always holds: at most [`limits::CONNECTIONS_MAX`] connections; each step has a time limit; one
//! caller's fault closes one connection and is told once in the log, and those of one address once in
//! [`limits::REFUSED_TOLD_EVERY`] with their number. When `shutdown`
//! completes, no new connection is taken and open ones may end what they do.

use std::{
    future::Future,
    net::SocketAddr,
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Router,
    extract::{ConnectInfo, DefaultBodyLimit},
    http::StatusCode,
};
use hyper::{Request, body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use rustls::ServerConfig;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tower::ServiceExt;
use tower_http::{limit::RequestBodyLimitLayer, timeout::TimeoutLayer};

use crate::{Caller, DoorError, limits, refusals::Refusals};

/// A door that listens but does not serve yet, so that its port is known before it opens.
#[derive(Debug)]
pub struct Door {
    listener: TcpListener,
    address: SocketAddr,
    tls: Arc<ServerConfig>,
}

impl Door {
    /// Listens; port 0 takes a free one.
    ///
    /// # Errors
    /// [`DoorError::Listen`] with the address and what the system said.
    pub async fn bind(listen: SocketAddr, tls: Arc<ServerConfig>) -> Result<Self, DoorError> {
        let failed = |cause| DoorError::Listen { listen, cause };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self {
            listener,
            address,
            tls,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` completes, then lets open connections end.
    pub async fn serve(self, router: Router, shutdown: impl Future<Output = ()>) {
        let router = router
            .layer(DefaultBodyLimit::disable())
            .layer(RequestBodyLimitLayer::new(limits::REQUEST_OCTETS_MAX))
            .layer(TimeoutLayer::with_status_code(
                StatusCode::SERVICE_UNAVAILABLE,
                limits::HANDLER_TIME_MAX,
            ));
        let acceptor = TlsAcceptor::from(self.tls);
        let places = Arc::new(Semaphore::new(limits::CONNECTIONS_MAX));
        let refusals = Arc::new(Refusals::default());
        let (close, closing) = watch::channel(false);
        let mut connections = JoinSet::new();
        let mut shutdown = pin!(shutdown);
        loop {
            let accepted = tokio::select! {
                () = &mut shutdown => break,
                accepted = accept(&self.listener, &places) => accepted,
            };
            let Some((stream, address, place)) = accepted else {
                continue;
            };
            let (acceptor, router, closing) = (acceptor.clone(), router.clone(), closing.clone());
            let refusals = refusals.clone();
            connections.spawn(async move {
                match shake_hands(stream, acceptor).await {
                    Ok((stream, caller)) => {
                        one_connection(stream, address, caller, router, closing).await;
                    }
                    Err(why) => {
                        if let Some(untold) = refusals.count(address.ip(), Instant::now()) {
                            tracing::warn!(%address, why, untold, "refused at the TLS handshake");
                        }
                    }
                }
                drop(place);
            });
            while connections.try_join_next().is_some() {}
        }
        drop(self.listener);
        close.send_replace(true);
        let all_ended = async { while connections.join_next().await.is_some() {} };
        // What has not ended by then is cut: dropping the set aborts it.
        let _ = timeout(limits::CLOSING_TIME_MAX, all_ended).await;
    }
}

/// Binds and serves until `shutdown` completes.
///
/// # Errors
/// [`DoorError::Listen`] if the address cannot be had.
pub async fn serve(
    listen: SocketAddr,
    tls: Arc<ServerConfig>,
    router: Router,
    shutdown: impl Future<Output = ()>,
) -> Result<(), DoorError> {
    Door::bind(listen, tls).await?.serve(router, shutdown).await;
    Ok(())
}

/// Waits for a free place first, so that callers beyond the limit queue in the kernel.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, address)) => Some((stream, address, place)),
        Err(error) => {
            // Out of descriptors, most likely: it passes when a connection ends.
            tracing::warn!(%error, "a connection could not be accepted");
            sleep(Duration::from_millis(100)).await;
            None
        }
    }
}

/// TLS and the caller's name, or why not.
async fn shake_hands(
    stream: TcpStream,
    acceptor: TlsAcceptor,
) -> Result<(TlsStream<TcpStream>, Caller), String> {
    let _ = stream.set_nodelay(true);
    let stream = timeout(limits::HANDSHAKE_TIME_MAX, acceptor.accept(stream))
        .await
        .map_err(|_| "gave no TLS handshake in time".to_owned())?
        .map_err(|error| error.to_string())?;
    let chain = stream.get_ref().1.peer_certificates();
    let caller = chain.and_then(|chain| chain.first()).map(Caller::of);
    let caller = caller.ok_or_else(|| "has shown no certificate".to_owned())?;
    Ok((stream, caller))
}

async fn one_connection(
    stream: TlsStream<TcpStream>,
    address: SocketAddr,
    caller: Caller,
    router: Router,
    mut closing: watch::Receiver<bool>,
) {
    tracing::debug!(%address, name = caller.name, "connected");
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(caller.clone());
        request.extensions_mut().insert(ConnectInfo(address));
        router.clone().oneshot(request)
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits::HEAD_TIME_MAX)
        .max_buf_size(limits::HEAD_OCTETS_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(limits::HEAD_TIME_MAX)
        .keep_alive_timeout(limits::HANDSHAKE_TIME_MAX)
        .max_header_list_size(limits::HEAD_OCTETS_MAX as u32)
        .max_concurrent_streams(limits::STREAMS_MAX);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut told = false;
    let ended = loop {
        tokio::select! {
            ended = connection.as_mut() => break ended,
            _ = closing.wait_for(|closing| *closing), if !told => {
                told = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%address, %error, "connection ended");
    }
}
