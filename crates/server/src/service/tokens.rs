//! Tokens: who bears which, known by the hash of its secret alone.

use super::input::Answer;
use super::requests::role;
use super::{Service, Who};
use crate::wire::error::{Code, Problem};
use crate::wire::token::{NewToken, Role, Token, TokenRequest};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, PoisonError, RwLock};

/// Tokens that count, by the hash of their secrets; read by whoever authenticates.
pub(crate) type Bearers = Arc<RwLock<HashMap<[u8; 32], Who>>>;

/// All tokens.
#[derive(Default)]
pub(crate) struct Tokens {
    all: Vec<(Token, [u8; 32])>,
    pub(crate) bearers: Bearers,
}

impl Tokens {
    /// As they were kept.
    pub(crate) fn new(all: Vec<(Token, [u8; 32])>) -> Tokens {
        let tokens = Tokens { all, bearers: Bearers::default() };
        for (token, hash) in tokens.all.iter().filter(|(token, _)| token.revoked_ms.is_none()) {
            tokens.admit(token, *hash);
        }
        tokens
    }

    fn admit(&self, token: &Token, hash: [u8; 32]) {
        let who = Who { user: token.user.clone(), role: token.role };
        self.bearers.write().unwrap_or_else(PoisonError::into_inner).insert(hash, who);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All of them, without their hashes.
    pub(crate) fn list(&self) -> Vec<Token> {
        self.all.iter().map(|(token, _)| token.clone()).collect()
    }
}

/// The hash under which a secret is known.
pub(crate) fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// A new secret of 256 random bits.
fn secret() -> Answer<String> {
    let mut bits = [0_u8; 32];
    getrandom::fill(&mut bits).map_err(|error| Problem::new(Code::Unavailable, format!("no random numbers: {error}")))?;
    let mut text = String::from("stp_");
    bits.iter().for_each(|byte| write!(text, "{byte:02x}").expect("a string takes everything"));
    Ok(text)
}

impl Service {
    fn administrator(who: &Who, what: &str) -> Answer<()> {
        if who.role == Role::Admin {
            return Ok(());
        }
        Err(Problem::new(Code::Forbidden, format!("{} has the role {}; {what} is for administrators", who.user, role(who.role))))
    }

    /// Makes a token; it counts when it is on disk.
    pub(super) fn make_token(&mut self, who: &Who, request: TokenRequest) -> Answer<NewToken> {
        Service::administrator(who, "making tokens")?;
        if !super::budgets::is_user(&request.user) || request.user == "*" {
            return Err(Problem::new(Code::Invalid, format!("user = \"{}\": expected a user's name", request.user)));
        }
        let secret = secret()?;
        let id = self.tokens.all.last().map_or(1, |(token, _)| token.id + 1);
        let TokenRequest { user, role, note } = request;
        let token = Token { id, user, role, note, made_ms: self.now.0, revoked_ms: None };
        let hash = hash(&secret);
        self.tokens.all.push((token.clone(), hash));
        self.batch.tokens.push((token.clone(), hash));
        self.after.push(Box::new(move |service| service.tokens.admit(&token, hash)));
        Ok(NewToken { id, token: secret })
    }

    /// Takes a token back, at once.
    pub(super) fn revoke_token(&mut self, who: &Who, id: u64) -> Answer<Token> {
        Service::administrator(who, "taking tokens back")?;
        let found = self.tokens.all.iter_mut().find(|(token, _)| token.id == id);
        let (token, hash) = found.ok_or_else(|| Problem::new(Code::NotFound, format!("there is no token {id}")))?;
        token.revoked_ms.get_or_insert(self.now.0);
        self.tokens.bearers.write().unwrap_or_else(PoisonError::into_inner).remove(hash);
        self.batch.tokens.push((token.clone(), *hash));
        Ok(token.clone())
    }

    /// All tokens, for administrators.
    pub(super) fn list_tokens(&self, who: &Who) -> Answer<Vec<Token>> {
        Service::administrator(who, "listing tokens")?;
        Ok(self.tokens.list())
    }
}
