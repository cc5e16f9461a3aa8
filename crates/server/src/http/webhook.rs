//! Webhooks: some kinds of lines of the event log, sent on to whoever wants to know.
//!
//! Each receiver has its own follower of the log and its own order: a line is sent until it is taken or its tries are used up, then the next.
//! A receiver that is slow or gone delays nobody else; what it is behind waits in the log. There is no TLS: put a proxy between.

use super::follow::Follower;
use super::{Api, stopped};
use crate::client::Client;
use crate::config::Webhook;
use crate::store::Line;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

/// How long to wait before each further try: about an hour in all.
const TRIES: [u64; 8] = [1, 5, 15, 60, 180, 600, 1200, 1800];

/// Lines that a receiver may be behind; of more the oldest are left out, which is said in the daemon's log.
const BEHIND_MAX: u64 = 100_000;

/// The kinds that a receiver may name in words of their own.
fn kinds(word: &str) -> &[&str] {
    match word {
        "start" => &["started", "running"],
        "preempted" => &["preempting"],
        "drain" => &["node"],
        "promise" => &["reserved", "unreserved"],
        _ => &[],
    }
}

fn wanted(hook: &Webhook, event: &str) -> bool {
    hook.events.iter().any(|word| word == event || kinds(word).contains(&event))
}

/// Sends what one receiver wants, until the daemon stops.
pub(super) async fn run(api: Arc<Api>, hook: Webhook) {
    let Some((address, path)) = target(&hook.url) else {
        return tracing::error!("webhook {}: expected http://HOST:PORT/PATH (no TLS); it is not called", hook.url);
    };
    let client = match Client::new(&address, None) {
        Ok(client) => client,
        Err(error) => return tracing::error!("webhook {}: {error}; it is not called", hook.url),
    };
    let mut follower = match Follower::new(api.clone(), None, None).await {
        Ok(follower) => follower,
        Err(refusal) => return tracing::error!("webhook {}: {refusal:?}; it is not called", hook.url),
    };
    let mut stop = api.stop.clone();
    loop {
        let line = tokio::select! {
            line = follower.next() => line,
            () = stopped(&mut stop) => return,
        };
        let Ok(Some(line)) = line else { return };
        if !wanted(&hook, &line.event) {
            continue;
        }
        tokio::select! {
            () = deliver(&client, &path, &hook, &line) => {}
            () = stopped(&mut stop) => return,
        }
        skip(&api, &mut follower, &hook.url).await;
    }
}

/// Passes over what is too far behind.
async fn skip(api: &Api, follower: &mut Follower, url: &str) {
    let Ok(last) = api.past.read(|records| records.last_line()).await else { return };
    if let Some(left_out) = follower.skip_to(last.saturating_sub(BEHIND_MAX)) {
        tracing::warn!("webhook {url} is too far behind: {left_out} lines are left out");
    }
}

/// The address and the path of a URL.
fn target(url: &str) -> Option<(String, String)> {
    let rest = url.strip_prefix("http://")?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = if host.contains(':') { host.to_string() } else { format!("{host}:80") };
    Some((format!("http://{host}"), format!("/{path}")))
}

/// Sends one line until it is taken or its tries are used up.
async fn deliver(client: &Client, path: &str, hook: &Webhook, line: &Line) {
    for (tries, pause) in TRIES.into_iter().enumerate() {
        let (client, path, signed, body, seq) = (client.clone(), path.to_string(), signature(hook, line), line.json.clone(), line.seq);
        let sent = tokio::task::spawn_blocking(move || {
            let seq = seq.to_string();
            let mut headers = vec![("stipend-line", seq.as_str())];
            headers.extend(signed.as_deref().map(|signed| ("stipend-signature", signed)));
            client.send_away(&path, "application/json", body.as_bytes(), &headers)
        });
        match sent.await {
            Ok(Ok(())) => return,
            Ok(Err(error)) if tries == 0 => tracing::warn!("webhook {}: line {}: {error}; it is tried again", hook.url, line.seq),
            Ok(Err(_)) => {}
            Err(_) => return,
        }
        tokio::time::sleep(Duration::from_secs(pause)).await;
    }
    tracing::error!("webhook {}: line {} was not taken and is left out", hook.url, line.seq);
}

/// `sha256=` and the HMAC of the body, if there is a secret.
fn signature(hook: &Webhook, line: &Line) -> Option<String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(hook.secret.as_ref()?.as_bytes()).expect("a key of any length will do");
    mac.update(line.json.as_bytes());
    let mut text = String::from("sha256=");
    mac.finalize().into_bytes().iter().for_each(|byte| write!(text, "{byte:02x}").expect("a string takes everything"));
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_an_address_and_a_path() {
        let is = |url: &str, address: &str, path: &str| assert_eq!(target(url), Some((address.into(), path.into())), "{url}");
        is("http://hooks.lab:8080/stipend?a=1", "http://hooks.lab:8080", "/stipend?a=1");
        is("http://hooks.lab", "http://hooks.lab:80", "/");
        assert_eq!(target("https://hooks.lab/"), None);
    }

    /// RFC 4231, test case 2.
    #[test]
    fn a_signature_is_the_hmac_of_the_body() {
        let hook = Webhook { url: String::new(), events: Vec::new(), secret: Some("Jefe".into()) };
        let json = "what do ya want for nothing?".to_string();
        let line = Line { seq: 1, t_ms: 0, event: String::new(), workload: None, json };
        let expected = "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(signature(&hook, &line).unwrap(), expected);
    }

    #[test]
    fn words_stand_for_kinds_of_lines() {
        let hook = Webhook { url: String::new(), events: vec!["start".into(), "ended".into()], secret: None };
        let events = ["started", "running", "ended", "preempting", "node"];
        assert_eq!(events.map(|event| wanted(&hook, event)), [true, true, true, false, false]);
    }
}
