//! Ctrl-C (and a request to terminate), handed on instead of ending the program.

use std::sync::mpsc::{Receiver, channel};
use std::thread;
use tokio::signal::unix::{SignalKind, signal};

/// From now on an interrupt sends a message instead of ending the program.
pub(crate) fn messages() -> anyhow::Result<Receiver<()>> {
    let (to, from) = channel();
    let (ready, is_ready) = channel();
    let listen = move || -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        runtime.block_on(async {
            let mut interrupts = signal(SignalKind::interrupt())?;
            let mut requests = signal(SignalKind::terminate())?;
            let _ = ready.send(());
            loop {
                tokio::select! {
                    _ = interrupts.recv() => {}
                    _ = requests.recv() => {}
                }
                if to.send(()).is_err() {
                    return Ok(());
                }
            }
        })
    };
    let listener = thread::Builder::new().name("interrupts".into()).spawn(listen)?;
    match is_ready.recv() {
        Ok(()) => Ok(from),
        // It ended before it listened, and says why.
        Err(_) => Err(listener.join().unwrap_or(Ok(())).err().unwrap_or_else(|| anyhow::anyhow!("interrupts cannot be listened to"))),
    }
}
