//! Who may ask, and who may not.

use crate::daemon::{Daemon, request};
use serde_json::{Value, json};
use stipend_server::client::Client;
use stipend_server::wire::error::Code;
use stipend_server::wire::token::{NewToken, Role, Token, WhoAmI};

#[test]
fn by_tcp_a_token_is_needed() {
    let daemon = Daemon::start();
    let none = daemon.raw(&request("GET", "/v1/budgets", &[], ""));
    assert_eq!((none.status, none.header("www-authenticate")), (401, Some("Bearer")), "{none:?}");
    assert!(none.message().contains("a token is needed"));
    for value in ["Bearer stp_0", "Bearer", "Basic YTpi", "Bearer \u{fc}"] {
        let answer = daemon.raw(&request("GET", "/v1/budgets", &[("authorization", value)], ""));
        assert_eq!(answer.status, 401, "{value}: {answer:?}");
    }
    for path in ["/healthz", "/readyz", "/v1/openapi.json"] {
        assert_eq!(daemon.raw(&request("GET", path, &[], "")).status, 200, "{path}");
    }
}

#[test]
fn by_the_socket_the_kernel_says_who_it_is() {
    let daemon = Daemon::start();
    let address = format!("unix:{}", daemon.socket().display());
    let me: WhoAmI = Client::new(&address, None).unwrap().get("/v1/whoami").unwrap();
    // Whoever runs the daemon administers it.
    assert_eq!(me.role, Role::Admin);
    assert!(!me.user.is_empty());
    // A token counts there, too: so one may be somebody with fewer rights.
    let ada: WhoAmI = Client::new(&address, Some(daemon.token_of("ada", "user"))).unwrap().get("/v1/whoami").unwrap();
    assert_eq!(
        ada,
        WhoAmI { user: "ada".into(), role: Role::User, manages: vec![], member_of: vec!["lab/nlp".into(), "lab/vision".into()] }
    );
}

#[test]
fn a_token_that_was_taken_back_counts_no_more() {
    let daemon = Daemon::start();
    let made: NewToken = daemon.admin().post("/v1/tokens", &json!({"user": "eve", "note": "laptop"}), &[]).unwrap();
    assert!(made.token.starts_with("stp_") && made.token.len() == 68, "{}", made.token);
    let eve = daemon.client(&made.token);
    eve.get::<WhoAmI>("/v1/whoami").unwrap();
    let listed: Vec<Token> = daemon.admin().get("/v1/tokens").unwrap();
    assert!(listed.iter().any(|token| token.id == made.id && token.user == "eve" && token.note == "laptop"));
    assert!(!daemon.admin().text("/v1/tokens").unwrap().contains(&made.token[4..]), "a secret is shown twice");
    let revoked: Token = daemon.admin().delete(&format!("/v1/tokens/{}", made.id)).unwrap();
    assert!(revoked.revoked_ms.is_some());
    assert_eq!(eve.get::<WhoAmI>("/v1/whoami").unwrap_err().code(), Some(Code::Unauthenticated));
}

/// What a role may, and the word that a refusal must hold.
#[test]
fn every_refusal_says_what_is_missing() {
    let daemon = Daemon::start();
    let (ada, boss, viewer, operator) = (
        daemon.as_user("ada", "user"),
        daemon.as_user("boss", "user"),
        daemon.as_user("vera", "viewer"),
        daemon.as_user("ole", "operator"),
    );
    let script = json!({"budget": "lab/nlp", "command": ["/bin/true"]});
    let share = json!({"based_on": 1, "reason": "more", "budgets": [{"path": "lab/nlp", "share": 50}]});
    let drain = json!({"reason": "fan"});
    let refused = |client: &Client, method: &str, path: &str, body: &Value| {
        let answer: Result<Value, _> = match method {
            "POST" => client.post(path, body, &[]),
            "PATCH" => client.patch(path, body, &[]),
            "GET" => client.get(path),
            _ => client.delete(path),
        };
        let error = answer.expect_err(path);
        assert_eq!(error.code(), Some(Code::Forbidden), "{error:?}");
        format!("{error} / {}", error.hint().unwrap_or_default())
    };
    let said = refused(&daemon.as_user("bob", "user"), "POST", "/v1/workloads", &script);
    assert!(said.contains("bob is no member of lab/nlp"), "{said}");
    refused(&viewer, "POST", "/v1/workloads", &script);
    let said = refused(&ada, "PATCH", "/v1/budgets", &share);
    assert!(said.contains("manage") && said.contains("boss"), "{said}");
    let said = refused(&ada, "POST", "/v1/nodes/h100-1/drain", &drain);
    assert!(said.contains("operators"), "{said}");
    refused(&boss, "POST", "/v1/tokens", &json!({"user": "boss", "role": "admin"}));
    refused(&operator, "GET", "/v1/tokens", &Value::Null);
    // And what they may.
    operator.post::<Value, _>("/v1/nodes/h100-1/drain", &drain, &[]).unwrap();
    operator.post::<Value, _>("/v1/nodes/h100-1/resume", &json!({}), &[]).unwrap();
    let version = boss.get::<Value>("/v1/budgets").unwrap()["version"].clone();
    let share = json!({"based_on": version, "reason": "more", "budgets": [{"path": "lab/nlp", "share": 50}]});
    boss.patch::<Value, _>("/v1/budgets", &share, &[]).unwrap();
    // Somebody else's work is theirs, their manager's, or an administrator's to stop.
    let work = daemon.submit(&ada, "lab/nlp", "sleep 60", json!({}));
    let path = format!("/v1/workloads/{}", work.id);
    let said = refused(&daemon.as_user("bob", "user"), "DELETE", &path, &Value::Null);
    assert!(said.contains("ada"), "{said}");
    refused(&daemon.as_user("bob", "user"), "GET", &format!("{path}/logs"), &Value::Null);
    boss.delete::<Value>(&format!("{path}?reason=enough")).unwrap();
}

#[test]
fn values_of_an_environment_are_its_owners() {
    let daemon = Daemon::start();
    let ada = daemon.as_user("ada", "user");
    let work = daemon.submit(&ada, "lab/nlp", "true", json!({"env": {"API_KEY": "secret-7"}}));
    let path = format!("/v1/workloads/{}", work.id);
    assert!(ada.text(&path).unwrap().contains("secret-7"));
    assert!(daemon.admin().text(&path).unwrap().contains("secret-7"));
    let seen = daemon.as_user("boss", "user").text(&path).unwrap();
    assert!(seen.contains("API_KEY") && !seen.contains("secret-7"), "{seen}");
}
