//! Where the daemon is, and what is asked of it: the paths of its API in one place.

use crate::failure::Failure;
use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::env;
use std::path::{Path, PathBuf};
use stipend_server::client::{self, Client, Error, escape};
use stipend_server::serve;
use stipend_server::wire::page::Page;

/// Which daemon is asked, and as whom.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Daemon")]
pub(crate) struct Remote {
    /// The daemon's address: unix:PATH or http://HOST:PORT [default: the socket in the data folder, else that of root's daemon]
    #[arg(long, value_name = "ADDRESS", env = "STIPEND_SERVER", hide_env_values = true)]
    pub(crate) server: Option<String>,
    /// A file with the token; so can the variable STIPEND_TOKEN hold it. On the socket none is needed
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

/// Where root's daemon keeps its data: where others may get to, unlike root's home.
const OF_ROOT: &str = "/var/lib/stipend";

/// The folder where a daemon keeps its data unless told otherwise: `$STIPEND_DATA`, else root's, or `~/.local/share/stipend`.
pub(crate) fn data_folder() -> PathBuf {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || set("HOME").unwrap_or_default();
    let own = || match nix::unistd::Uid::effective().is_root() {
        true => OF_ROOT.into(),
        false => set("XDG_DATA_HOME").unwrap_or_else(|| home().join(".local/share")).join("stipend"),
    };
    set("STIPEND_DATA").unwrap_or_else(own)
}

/// The socket of the daemon in one's own folder; where there is none, root's, which is for all accounts.
fn usual_socket() -> PathBuf {
    let (own, of_root) = (serve::socket(&data_folder()), serve::socket(Path::new(OF_ROOT)));
    let is_there = |socket: &Path| std::fs::symlink_metadata(socket).is_ok();
    if !is_there(&own) && is_there(&of_root) { of_root } else { own }
}

impl Remote {
    /// As the environment says: where no argument can.
    pub(crate) fn from_environment() -> Remote {
        Remote { server: env::var("STIPEND_SERVER").ok().filter(|server| !server.is_empty()), token_file: None }
    }

    /// A way to ask it. Nothing is sent yet.
    pub(crate) fn daemon(&self) -> Result<Daemon, Failure> {
        let socket = || format!("unix:{}", usual_socket().display());
        Daemon::at(self.server.clone().unwrap_or_else(socket), self.token()?)
    }

    fn token(&self) -> Result<Option<String>, Failure> {
        let Some(file) = &self.token_file else {
            return Ok(env::var("STIPEND_TOKEN").ok().filter(|token| !token.is_empty()));
        };
        let text = std::fs::read_to_string(file)
            .map_err(|error| Failure::from(error).context(format!("--token-file: cannot read {}", file.display())))?;
        Ok(Some(text.trim().to_owned()))
    }
}

/// A daemon that can be asked.
pub(crate) struct Daemon {
    address: String,
    client: Client,
}

/// What a request gives.
pub(crate) type Asked<T> = Result<T, Failure>;

impl Daemon {
    fn at(address: String, token: Option<String>) -> Asked<Daemon> {
        let client = Client::new(&address, token).map_err(failure)?;
        Ok(Daemon { address, client })
    }

    /// The same daemon, asked with this token.
    pub(crate) fn with_token(&self, token: String) -> Asked<Daemon> {
        Daemon::at(self.address.clone(), Some(token))
    }

    /// Reads something; `path` is escaped already.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Asked<T> {
        self.client.get(path).map_err(failure)
    }

    /// Sends something.
    pub(crate) fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize, headers: &[(&str, &str)]) -> Asked<T> {
        self.client.post(path, body, headers).map_err(failure)
    }

    /// Changes something.
    pub(crate) fn patch<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Asked<T> {
        self.client.patch(path, body, &[]).map_err(failure)
    }

    /// Reads a text.
    pub(crate) fn text(&self, path: &str) -> Asked<String> {
        self.client.text(path).map_err(failure)
    }

    /// A part of the event log, and where the next begins.
    pub(crate) fn part(&self, path: &str) -> Asked<(String, Option<u64>)> {
        self.client.part(path).map_err(failure)
    }

    /// Sends a text.
    pub(crate) fn post_text<T: DeserializeOwned>(&self, path: &str, kind: &str, body: &str) -> Asked<T> {
        self.client.post_text(path, kind, body, &[]).map_err(failure)
    }

    /// Takes something away.
    pub(crate) fn delete<T: DeserializeOwned>(&self, path: &str) -> Asked<T> {
        self.client.delete(path).map_err(failure)
    }

    /// Bytes as they come.
    pub(crate) fn bytes(&self, path: &str) -> Asked<client::Body> {
        self.client.bytes(path).map_err(failure)
    }

    /// Events as they come.
    pub(crate) fn stream(&self, path: &str) -> Asked<client::Events> {
        self.client.stream(path).map_err(failure)
    }

    /// A list, all its pages, at most `limit` of it.
    pub(crate) fn list<T: DeserializeOwned>(&self, path: &str, query: &Query, limit: usize) -> Asked<Vec<T>> {
        let mut items = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let page = query.clone().with("limit", Some((limit - items.len()).min(1000))).with("cursor", cursor.as_deref());
            let Page { items: some, next } = self.get::<Page<T>>(&page.of(path))?;
            items.extend(some);
            cursor = next.filter(|_| items.len() < limit);
            if cursor.is_none() {
                return Ok(items);
            }
        }
    }
}

/// What the client says, with what can be done about it.
pub(crate) fn failure(error: Error) -> Failure {
    let hint = error.hint().map(str::to_owned);
    let failure = Failure::from(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// The fields behind a path's question mark.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query(String);

impl Query {
    /// With one more field, if it has a value.
    pub(crate) fn with(mut self, name: &str, value: Option<impl ToString>) -> Query {
        if let Some(value) = value {
            self.0 += &format!("{}{name}={}", if self.0.is_empty() { "?" } else { "&" }, escape(&value.to_string()));
        }
        self
    }

    /// The path with it.
    pub(crate) fn of(&self, path: &str) -> String {
        format!("{path}{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_escaped_and_leaves_out_what_has_no_value() {
        let query = Query::default().with("user", None::<&str>).with("budget", Some("lab/nlp & co")).with("limit", Some(5));
        assert_eq!(query.of("/v1/workloads"), "/v1/workloads?budget=lab%2Fnlp%20%26%20co&limit=5");
        assert_eq!(Query::default().of("/v1/pools"), "/v1/pools");
    }
}
