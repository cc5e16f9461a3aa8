//! The HTTP API: routes over the service's [`Handle`] and the store's readers.
//!
//! Who asks is found out here ([`access`]); what they may do is judged by the service, on its own state. Everything that anybody sends is
//! bounded ([`limits`], [`extract`], [`listen`]), and every refusal is a [`Problem`](crate::wire::error::Problem).

mod access;
mod backup;
mod budgets;
mod events;
mod extract;
mod follow;
mod health;
mod limits;
mod listen;
mod metrics;
mod nodes;
mod openapi;
mod output;
mod past;
mod present;
mod refusal;
mod sheet;
mod tally;
mod tokens;
mod usage;
mod webhook;
mod whatif;
mod workloads;

pub(crate) use access::account;
pub use listen::Listeners;

use crate::config::DaemonConfig;
use crate::service::Handle;
use crate::wire::error::Code;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use limits::Limits;
use past::Past;
use present::Present;
use refusal::Refusal;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tally::Tally;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};
use tower_http::catch_panic::CatchPanicLayer;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

const TAG_WORKLOADS: &str = "workloads";
const TAG_BUDGETS: &str = "budgets";
const TAG_NODES: &str = "nodes";
const TAG_EVENTS: &str = "events";
const TAG_TOKENS: &str = "tokens";
const TAG_DAEMON: &str = "daemon";

/// An answer begins within this time. It is longer than a wait for a workload's end.
const PATIENCE: Duration = Duration::from_secs(65);

/// What takes long by its nature, and how long that may be.
pub(crate) const LONG: [&str; 2] = ["/v1/whatif", "/v1/backup"];
const PATIENCE_LONG: Duration = Duration::from_secs(600);

/// A path with its query is at most so long.
const URI_MAX: usize = 8 << 10;

/// Connections that are open when the daemon stops have so long for their answers.
const FAREWELL: Duration = Duration::from_secs(5);

/// What all routes share.
struct Api {
    handle: Handle,
    past: Past,
    present: Present,
    limits: Limits,
    tally: Tally,
    /// One what-if at a time.
    whatif: Arc<Semaphore>,
    /// The daemon stops.
    stop: watch::Receiver<bool>,
}

/// The API as it runs.
pub struct Server {
    runtime: Runtime,
    stop: watch::Sender<bool>,
    serving: tokio::task::JoinHandle<io::Result<()>>,
    address: Option<SocketAddr>,
}

impl Server {
    /// Serves the API for a service whose store is in `folder`, and calls the webhooks.
    ///
    /// # Errors
    /// No threads, or no sockets.
    pub fn start(handle: Handle, folder: &Path, config: &DaemonConfig, listeners: Listeners) -> io::Result<Server> {
        let runtime = tokio::runtime::Builder::new_multi_thread().thread_name("api").enable_all().build()?;
        let (stop, stopped) = watch::channel(false);
        let api = Arc::new(Api {
            handle,
            past: Past::new(folder.to_owned()),
            present: Present::default(),
            limits: Limits::new(config.requests_per_second_max),
            tally: Tally::default(),
            whatif: Arc::new(Semaphore::new(1)),
            stop: stopped.clone(),
        });
        let address = listeners.address();
        runtime.spawn(tally::watch(api.clone()));
        for hook in &config.webhooks {
            runtime.spawn(webhook::run(api.clone(), hook.clone()));
        }
        let serving = runtime.spawn(listeners.serve(router(api), stopped));
        Ok(Server { runtime, stop, serving, address })
    }

    /// Where it listens, by TCP.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Takes no more connections, and lets those that are open have their answers, for a few seconds. Streams end.
    pub fn stop(self) {
        // Whoever watches has gone only if serving failed.
        let _ = self.stop.send(true);
        let serving = self.serving;
        self.runtime.block_on(async { tokio::time::timeout(FAREWELL, serving).await }).map_or_else(
            |_| tracing::info!("some connections were still open"),
            |served| match served {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::error!("the API: {error}"),
                Err(error) => tracing::error!("the API: {error}"),
            },
        );
        self.runtime.shutdown_background();
    }
}

/// Returns when the daemon stops.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // Whoever says so has gone only if the daemon has.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// All routes with their document.
fn routes() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::with_openapi(openapi::begin())
        .routes(routes!(workloads::submit, workloads::list))
        .routes(routes!(workloads::show, workloads::cancel))
        .routes(routes!(workloads::hold))
        .routes(routes!(workloads::release))
        .routes(routes!(workloads::explain))
        .routes(routes!(workloads::wait))
        .routes(routes!(output::logs))
        .routes(routes!(budgets::tree, budgets::change))
        .routes(routes!(budgets::export, budgets::import))
        .routes(routes!(budgets::changesets))
        .routes(routes!(budgets::withdraw))
        .routes(routes!(usage::usage))
        .routes(routes!(whatif::whatif))
        .routes(routes!(nodes::list))
        .routes(routes!(nodes::drain))
        .routes(routes!(nodes::resume))
        .routes(routes!(nodes::pools))
        .routes(routes!(events::events))
        .routes(routes!(tokens::make, tokens::list))
        .routes(routes!(tokens::revoke))
        .routes(routes!(tokens::whoami))
        .routes(routes!(backup::backup))
        .routes(routes!(openapi::document))
        .routes(routes!(metrics::metrics))
        .routes(routes!(health::alive))
        .routes(routes!(health::ready))
}

/// The API's document, as JSON for people and programs: `docs/reference/openapi.json`.
pub fn openapi_json() -> String {
    let document = openapi::finish(routes().into_openapi());
    let mut text = document.to_pretty_json().expect("it is made of texts and numbers");
    text.push('\n');
    text
}

fn router(api: Arc<Api>) -> Router {
    let (router, _) = routes().split_for_parts();
    router
        .fallback(refusal::no_route)
        .method_not_allowed_fallback(refusal::no_method)
        .layer(middleware::from_fn(bounded))
        .layer(middleware::from_fn_with_state(api.clone(), access::identify))
        .layer(CatchPanicLayer::custom(refusal::panicked))
        .layer(middleware::from_fn_with_state(api.clone(), counted))
        .with_state(api)
}

/// No request is too long, and none waits for ever.
async fn bounded(request: Request, next: Next) -> Response {
    let uri = request.uri();
    if uri.path_and_query().is_some_and(|path| path.as_str().len() > URI_MAX) {
        let message = format!("the path with its query is longer than {} KiB", URI_MAX >> 10);
        return Refusal::new(StatusCode::URI_TOO_LONG, Code::TooLarge, message).into_response();
    }
    let patience = if LONG.contains(&uri.path()) { PATIENCE_LONG } else { PATIENCE };
    tokio::time::timeout(patience, next.run(request)).await.unwrap_or_else(|_| {
        let message =
            format!("no answer within {} s: the daemon is busy, or its disk is; what was asked for may still be done", patience.as_secs());
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable, message).retry_after(10).into_response()
    })
}

/// Counts requests, for the metrics.
async fn counted(State(api): State<Arc<Api>>, request: Request, next: Next) -> Response {
    let (begin, method) = (Instant::now(), request.method().clone());
    let response = next.run(request).await;
    api.tally.request(&method, response.status(), begin.elapsed());
    response
}
