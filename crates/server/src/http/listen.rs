//! Sockets: the ones that are listened on, and the connections that they give.

use super::access::{Peer, local_account};
use super::stopped;
use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, watch};
use tower::ServiceExt;

/// So many connections at once; more wait to be accepted.
const CONNECTIONS_MAX: usize = 1024;

/// The head of a request comes within this time, so that idle and slow connections end.
const HEAD_PATIENCE: Duration = Duration::from_secs(30);

/// A head is at most so long; what is longer is answered 431 by the parser.
const HEAD_MAX: usize = 32 << 10;

const HEADERS_MAX: usize = 64;

/// After a failure to accept, such as no more file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What the daemon listens on.
pub struct Listeners {
    tcp: Option<TcpListener>,
    unix: Option<UnixListener>,
}

impl Listeners {
    /// Listens on `host:port` (tokens are needed) and on a unix socket (local accounts are known by the kernel).
    ///
    /// # Errors
    /// A sentence that says what is in the way.
    pub fn bind(tcp: Option<&str>, unix: Option<&Path>) -> Result<Listeners, String> {
        let tcp = tcp.map(bind_tcp).transpose()?;
        let unix = unix.map(bind_unix).transpose()?;
        Ok(Listeners { tcp, unix })
    }

    /// The TCP address, with the port that was given where 0 was asked for.
    pub fn address(&self) -> Option<std::net::SocketAddr> {
        self.tcp.as_ref().and_then(|tcp| tcp.local_addr().ok())
    }

    /// Serves all connections until `stop`, then until those that are open have their answers.
    pub(super) async fn serve(self, router: Router, stop: watch::Receiver<bool>) -> io::Result<()> {
        let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut tasks = Vec::new();
        if let Some(tcp) = self.tcp {
            let tcp = tokio::net::TcpListener::from_std(tcp)?;
            tasks.push(tokio::spawn(accept_tcp(tcp, room.clone(), router.clone(), stop.clone())));
        }
        if let Some(unix) = self.unix {
            let unix = tokio::net::UnixListener::from_std(unix)?;
            tasks.push(tokio::spawn(accept_unix(unix, room.clone(), router, stop)));
        }
        for task in tasks {
            task.await.map_err(io::Error::other)?;
        }
        // All room is free when the last connection is closed.
        let _ = room.acquire_many(CONNECTIONS_MAX as u32).await;
        Ok(())
    }
}

fn bind_tcp(address: &str) -> Result<TcpListener, String> {
    let listener = TcpListener::bind(address).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => format!("{address} is in use: does a daemon run there already? --listen takes another address"),
        io::ErrorKind::PermissionDenied => format!("{address} may not be listened on by this account; ports from 1024 on may"),
        _ => format!("{address} cannot be listened on: {error}; expected HOST:PORT such as 127.0.0.1:7411"),
    })?;
    listener.set_nonblocking(true).map_err(|error| format!("{address}: {error}"))?;
    if listener.local_addr().is_ok_and(|own| !own.ip().is_loopback()) {
        tracing::warn!("{address} is reached from other machines, and nothing is encrypted: tokens and output can be read on the way");
    }
    Ok(listener)
}

/// A socket that nobody listens on any more is left over from a daemon that was killed, and makes room.
fn bind_unix(path: &Path) -> Result<UnixListener, String> {
    let failed = |error: io::Error| format!("{}: cannot be listened on: {error}", path.display());
    if let Ok(found) = std::fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            return Err(format!("{} is in the way: it is not a socket", path.display()));
        }
        if UnixStream::connect(path).is_ok() {
            return Err(format!("{} is in use: a daemon runs on this folder already", path.display()));
        }
        std::fs::remove_file(path).map_err(failed)?;
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    // Every local account may connect; who it is says the kernel.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

async fn accept_tcp(listener: tokio::net::TcpListener, room: Arc<Semaphore>, router: Router, mut stop: watch::Receiver<bool>) {
    while let Ok(place) = room.clone().acquire_owned().await {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopped(&mut stop) => return,
        };
        match accepted {
            Ok((stream, _)) => {
                // Without it an answer may wait for the other side's acknowledgement.
                let _ = stream.set_nodelay(true);
                let connection = converse(stream, None, router.clone(), stop.clone());
                tokio::spawn(async move {
                    connection.await;
                    drop(place);
                });
            }
            Err(error) => pause(&error).await,
        }
    }
}

async fn accept_unix(listener: tokio::net::UnixListener, room: Arc<Semaphore>, router: Router, mut stop: watch::Receiver<bool>) {
    while let Ok(place) = room.clone().acquire_owned().await {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopped(&mut stop) => return,
        };
        let named = accepted.and_then(|(stream, _)| Ok((local_account(stream.peer_cred()?.uid()), stream)));
        match named {
            Ok((peer, stream)) => {
                let connection = converse(stream, Some(peer), router.clone(), stop.clone());
                tokio::spawn(async move {
                    connection.await;
                    drop(place);
                });
            }
            Err(error) => pause(&error).await,
        }
    }
}

async fn pause(error: &io::Error) {
    tracing::warn!("a connection could not be accepted: {error}");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}

/// One connection, until it is closed or stopped.
async fn converse<S>(stream: S, peer: Option<Peer>, router: Router, mut stop: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let answer = service_fn(move |request: hyper::Request<Incoming>| {
        let mut request = request.map(Body::new);
        if let Some(peer) = &peer {
            request.extensions_mut().insert(peer.clone());
        }
        router.clone().oneshot(request)
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_PATIENCE).max_buf_size(HEAD_MAX).max_headers(HEADERS_MAX);
    let mut connection = std::pin::pin!(http.serve_connection(TokioIo::new(stream), answer));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopped(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!("a connection ended early: {error}");
    }
}
