//! `stipend token`.

use crate::failure::{Answer, Outcome};
use crate::moment::{clock, now_ms};
use crate::names::word;
use crate::output::{self, Format};
use crate::remote::Remote;
use crate::table::{Column, Table};
use clap::{Args, Subcommand, ValueEnum};
use stipend_server::wire::token::{NewToken, Role, Token, TokenRequest};

/// Make, list and take back tokens: who may ask the daemon for what.
#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    Create(Create),
    List(List),
    Revoke(Revoke),
}

/// Make a token. It is printed this once; the daemon keeps only its hash.
#[derive(Debug, Args)]
#[command(after_help = CREATE)]
pub(super) struct Create {
    /// For whom
    user: String,
    /// What its bearer may do
    #[arg(long, value_enum, value_name = "ROLE", default_value = "user")]
    role: RoleFlag,
    /// What it is for
    #[arg(long, value_name = "TEXT", default_value = "")]
    note: String,
    #[command(flatten)]
    to: To,
}

const CREATE: &str = "\
Examples:
  stipend token create ann > ann.token
  stipend token create ci --role viewer --note 'the dashboard'
  STIPEND_TOKEN=$(cat ann.token) stipend queue";

/// List tokens, without their secrets.
#[derive(Debug, Args)]
#[command(after_help = LIST)]
pub(super) struct List {
    #[command(flatten)]
    to: To,
}

const LIST: &str = "\
Examples:
  stipend token list";

/// Take a token back.
#[derive(Debug, Args)]
#[command(after_help = REVOKE)]
pub(super) struct Revoke {
    /// Its number, as `stipend token list` shows it
    id: u64,
    #[command(flatten)]
    to: To,
}

const REVOKE: &str = "\
Examples:
  stipend token revoke 3";

/// What its bearer may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RoleFlag {
    /// Everything
    Admin,
    /// Drain and resume nodes, see everything
    Operator,
    /// What the budget tree says of its user, see everything
    User,
    /// See everything
    Viewer,
}

#[derive(Debug, Args)]
struct To {
    /// How to print it
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
    #[command(flatten)]
    remote: Remote,
}

impl TokenCommand {
    pub(super) fn run(self) -> Outcome {
        match self {
            TokenCommand::Create(create) => create.run(),
            TokenCommand::List(List { to }) => {
                let tokens = to.remote.daemon()?.get::<Vec<Token>>("/v1/tokens")?;
                to.print(&tokens)
            }
            TokenCommand::Revoke(Revoke { id, to }) => {
                let token = to.remote.daemon()?.delete::<Token>(&format!("/v1/tokens/{id}"))?;
                to.print(&[token])
            }
        }
    }
}

impl Create {
    fn run(self) -> Outcome {
        let role = match self.role {
            RoleFlag::Admin => Role::Admin,
            RoleFlag::Operator => Role::Operator,
            RoleFlag::User => Role::User,
            RoleFlag::Viewer => Role::Viewer,
        };
        let request = TokenRequest { user: self.user, role, note: self.note };
        let made = self.to.remote.daemon()?.post::<NewToken>("/v1/tokens", &request, &[])?;
        match self.to.format {
            Format::Table => {
                output::note(&format!("token {} for {}, {}; it is shown this once:", made.id, request.user, word(role)));
                output::text(&made.token)?;
            }
            Format::Json => output::json(&made)?,
        }
        Ok(Answer::Yes)
    }
}

impl To {
    fn print(&self, tokens: &[Token]) -> Outcome {
        output::data(self.format, &tokens, || table(tokens, now_ms()).text(output::width()))?;
        Ok(Answer::Yes)
    }
}

fn table(tokens: &[Token], now_ms: i64) -> Table {
    let mut table = Table::new(&[
        ("id", Column::Figures),
        ("user", Column::Words),
        ("role", Column::Words),
        ("made", Column::Words),
        ("taken back", Column::Words),
        ("note", Column::Shrinks),
    ]);
    for token in tokens {
        table.row([
            token.id.to_string(),
            token.user.clone(),
            word(token.role),
            clock(token.made_ms, now_ms),
            token.revoked_ms.map_or(String::new(), |at| clock(at, now_ms)),
            token.note.clone(),
        ]);
    }
    table
}
