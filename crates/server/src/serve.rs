//! The whole daemon: store, engine, service and API put together, until somebody stops it.

use crate::config::{Config, ConfigError};
use crate::driver::local::{self, Local, Settings};
use crate::driver::{Driver, EngineNode, Reports};
use crate::http::{Listeners, Server, account};
use crate::service::{self, StartError, Started};
use crate::store::{Store, StoreError};
use crate::wire::token::NewToken;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How the daemon is started.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where it keeps everything.
    pub data: PathBuf,
    /// Where the API listens, instead of what the configuration says; `none` is the socket in the data folder alone.
    pub listen: Option<String>,
    /// The configuration file; without one the machine is looked at.
    pub config: Option<PathBuf>,
}

/// Why it did not start, or did not go on.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The service cannot start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The API cannot listen.
    #[error("{0}")]
    Listen(String),
    /// The system does not let it.
    #[error(transparent)]
    System(#[from] io::Error),
}

impl ServeError {
    /// What to do next, where something can be said.
    pub fn hint(&self) -> Option<String> {
        match self {
            ServeError::Store(error) | ServeError::Start(StartError::Store(error)) => error.hint(),
            _ => None,
        }
    }
}

/// A daemon that runs.
pub struct Daemon {
    /// An administrator's token, made because there was none at all: to be shown once.
    pub first_token: Option<NewToken>,
    /// Where the API listens by TCP, if it does.
    pub address: Option<SocketAddr>,
    /// Where local users reach it.
    pub socket: PathBuf,
    started: Started,
    server: Server,
}

/// The socket in a data folder.
pub fn socket(data: &Path) -> PathBuf {
    data.join("stipend.sock")
}

impl Daemon {
    /// Starts it.
    ///
    /// # Errors
    /// What is wrong, and what would be right; nothing was changed or commanded.
    pub fn start(options: &Options) -> Result<Daemon, ServeError> {
        let config = options.config.as_deref().map_or(Ok(Config::default()), Config::load)?;
        let (store, restored) = Store::open(&options.data)?;
        for warning in &restored.warnings {
            tracing::warn!("{warning}");
        }
        let data = std::fs::canonicalize(&options.data)?;
        let listen = options.listen.as_deref().unwrap_or(&config.daemon.listen);
        let socket = socket(&data);
        let listeners = Listeners::bind((listen != "none").then_some(listen), Some(&socket)).map_err(ServeError::Listen)?;
        let settings = settings(&data, &config);
        let driver = |reports: Arc<dyn Reports>| Ok(Box::new(Local::start(settings, reports)?) as Box<dyn Driver>);
        let daemon_config = config.daemon.clone();
        let started = service::start((store, restored), config, &account(nix::unistd::geteuid()), driver)?;
        let server = Server::start(started.handle.clone(), &data, &daemon_config, listeners)?;
        if let Some(folder) = closed_to_others(&socket) {
            let folder = folder.display();
            tracing::warn!(
                "other accounts cannot reach the socket, as they may not enter {folder}: they need a token, or `chmod o+x {folder}`"
            );
        }
        Ok(Daemon { first_token: started.first_token.clone(), address: server.address(), socket, started, server })
    }

    /// Waits for SIGTERM or SIGINT, then stops: answers what is open, writes a snapshot. What runs goes on.
    ///
    /// # Errors
    /// The store failed, and with it the daemon.
    pub fn run(self) -> Result<(), ServeError> {
        let Daemon { started, server, .. } = self;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = started.thread;
        runtime.block_on(async {
            use tokio::signal::unix::{SignalKind, signal};
            let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
            let mut look = tokio::time::interval(std::time::Duration::from_millis(200));
            loop {
                tokio::select! {
                    _ = terminate.recv() => break,
                    _ = interrupt.recv() => break,
                    _ = look.tick() => if thread.is_finished() { break },
                }
            }
            io::Result::Ok(())
        })?;
        server.stop();
        started.handle.shut_down();
        match thread.join() {
            Ok(ended) => Ok(ended?),
            Err(_) => Err(ServeError::System(io::Error::other("the service panicked; what is on disk is whole"))),
        }
    }
}

/// The folder on the way to the socket that only its owner or group may enter, if there is one.
fn closed_to_others(socket: &Path) -> Option<&Path> {
    use std::os::unix::fs::PermissionsExt;
    let lets_in = |folder: &Path| std::fs::metadata(folder).is_ok_and(|of| of.permissions().mode() & 0o001 != 0);
    socket.ancestors().skip(1).filter(|folder| !lets_in(folder)).last()
}

/// What the local engine is told: the configured nodes, which are parts of this machine, or the machine itself. Where that has no GPU it
/// has virtual ones.
fn settings(data: &Path, config: &Config) -> Settings {
    let (nodes, are_virtual) = if config.nodes.is_empty() { this_machine() } else { (config.nodes.clone(), true) };
    Settings {
        output_max: config.daemon.output_max_mib << 20,
        kept_bytes_max: config.daemon.output_kept_mib << 20,
        repair_command: config.daemon.repair_command.clone(),
        health_command: config.daemon.health_command.clone(),
        idle_after: config.daemon.idle_after.0,
        ..Settings::new(data.to_owned(), nodes, are_virtual)
    }
}

/// This machine as one node, and whether its GPUs are virtual, for want of real ones.
fn this_machine() -> (Vec<EngineNode>, bool) {
    let (node, why) = local::discover("gpus");
    match why {
        None => (vec![node], false),
        Some(why) => {
            tracing::warn!("no GPU was found ({why}): this machine is a node with 8 virtual GPUs");
            (vec![EngineNode { gpus: 8, cpus: 0, memory: 0, ..node }], true)
        }
    }
}
