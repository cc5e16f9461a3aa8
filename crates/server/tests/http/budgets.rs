//! The tree, its versions, and its sheet.

use crate::daemon::Daemon;
use serde_json::{Value, json};
use stipend_server::wire::budget::{Changeset, Tree};
use stipend_server::wire::page::Page;
use stipend_server::wire::usage::Usage;

#[test]
fn a_change_knows_the_version_it_was_made_from() {
    let daemon = Daemon::start();
    let before = daemon.ask("GET", "/v1/budgets", &[], "");
    let tag = before.header("etag").unwrap().to_string();
    assert_eq!(tag, format!("\"{}\"", before.json()["version"]));
    let body =
        json!({"reason": "the new team", "budgets": [{"path": "lab/nlp", "share": 50}, {"path": "lab/bio", "share": 10}]}).to_string();
    let dry = daemon.ask("PATCH", "/v1/budgets?dry_run=true", &[("if-match", &tag)], &body);
    assert_eq!(dry.status, 200, "{dry:?}");
    assert_eq!(daemon.ask("GET", "/v1/budgets", &[], "").header("etag"), Some(tag.as_str()), "a dry run changed the tree");
    let made = daemon.ask("PATCH", "/v1/budgets", &[("if-match", &tag)], &body);
    assert_eq!(made.status, 200, "{made:?}");
    assert_eq!(made.json()["difference"], dry.json()["difference"]);
    // The same again is stale.
    let stale = daemon.ask("PATCH", "/v1/budgets", &[("if-match", &tag)], &body);
    assert_eq!(stale.status, 412, "{stale:?}");
    let stale = body.replacen('{', &format!("{{\"based_on\": {},", before.json()["version"]), 1);
    let stale = daemon.ask("PATCH", "/v1/budgets", &[], &stale);
    assert_eq!(stale.status, 409, "{stale:?}");
    let all: Page<Changeset> = daemon.admin().get("/v1/changesets").unwrap();
    assert_eq!((all.items[0].author.as_str(), all.items[0].reason.as_str()), ("admin", "the new team"));
}

#[test]
fn a_dated_change_is_withdrawn() {
    let daemon = Daemon::start();
    let version = daemon.admin().get::<Tree>("/v1/budgets").unwrap().version;
    let date = 4_000_000_000_000_i64;
    let body = json!({"based_on": version, "reason": "next year", "effective_ms": date, "budgets": [{"path": "lab/nlp", "share": 10}]});
    let dated: Changeset = daemon.admin().patch("/v1/budgets", &body, &[]).unwrap();
    assert_eq!((dated.version, dated.effective_ms), (None, date));
    let path = format!("/v1/changesets/{}", dated.id);
    assert!(daemon.admin().delete::<Changeset>(&path).unwrap().withdrawn);
    daemon.admin().delete::<Changeset>(&path).unwrap_err();
    assert_eq!(daemon.admin().get::<Tree>("/v1/budgets").unwrap().version, version);
}

#[test]
fn the_sheet_goes_out_and_comes_back() {
    let daemon = Daemon::start();
    let sheet = daemon.admin().text("/v1/budgets/sheet").unwrap();
    let post = |sheet: &str| daemon.admin().post_text::<Changeset>("/v1/budgets/sheet?reason=budget%20round", "text/csv", sheet, &[]);
    assert!(post(&sheet).unwrap_err().to_string().contains("says what the tree already is"));
    let changed = sheet.replace("lab/nlp,h100,60", "lab/nlp,h100,55.5") + ",lab/bio,h100,4.5,8,,2h,fifo,,eve\n";
    let made = post(&changed).unwrap();
    assert!(made.difference.iter().any(|line| line == "lab/nlp share 60 % -> 55.5 %"), "{:?}", made.difference);
    let again = daemon.admin().text("/v1/budgets/sheet").unwrap();
    assert!(again.contains("lab/nlp,h100,55.5,") && again.contains(",lab/bio,h100,4.5,8,,2h,fifo,,eve\n"), "{again}");
}

#[test]
fn usage_counts_what_runs_and_what_ran() {
    let daemon = Daemon::start();
    let ada = daemon.as_user("ada", "user");
    let ran = daemon.submit(&ada, "lab/nlp", "sleep 0.3", json!({"gpus": 4, "min_runtime": "1m"}));
    daemon.wait(ran.id);
    daemon.submit(&ada, "lab/nlp", "sleep 600", json!({"gpus": 8, "min_runtime": "1m"}));
    let of = |by: &str| ada.get::<Usage>(&format!("/v1/usage?by={by}&budget=lab")).unwrap();
    let delivered = |usage: &Usage, path: &str| usage.budgets.iter().find(|row| row.budget == path).unwrap().delivered_gpu_hours;
    let first = of("hour");
    assert!(delivered(&first, "lab/nlp") > 0.3 * 4.0 / 3600.0, "{first:?}");
    assert_eq!(delivered(&first, "lab"), delivered(&first, "lab/nlp"));
    assert_eq!(delivered(&first, "lab/vision"), 0.0);
    // Its claim is 9.6 GPUs and it asks for 8: it is owed what it asks for, and so is what is above it.
    let owed = |path: &str| of("hour").budgets.iter().find(|row| row.budget == path).unwrap().owed_gpu_hours.unwrap();
    crate::daemon::until("nothing is owed", || (owed("lab/nlp") > 0.0 && owed("lab") > 0.0).then_some(()));
    assert_eq!(owed("lab/vision"), 0.0);
    // What runs goes on being counted.
    crate::daemon::until("nothing more is counted", || (delivered(&of("day"), "lab") > delivered(&first, "lab")).then_some(()));
    let rows: Value = ada.get("/v1/usage?pool=none").unwrap();
    assert_eq!(rows["budgets"], json!([]));
}

#[test]
fn a_change_is_tried_before_it_is_made() {
    let daemon = Daemon::start();
    let request = json!({"reason": "what if", "budgets": [{"path": "lab/nlp", "share": 10}], "days": 1});
    let before: Tree = daemon.admin().get("/v1/budgets").unwrap();
    let answer: Value = daemon.admin().post("/v1/whatif", &request, &[]).unwrap();
    assert_eq!(answer["difference"], json!(["lab/nlp share 60 % -> 10 %"]));
    assert_eq!(daemon.admin().get::<Tree>("/v1/budgets").unwrap().version, before.version);
}

#[test]
fn a_backup_is_a_new_file_and_an_administrators() {
    let daemon = Daemon::start();
    let path = daemon.socket().with_file_name("copy.db");
    let request = json!({"path": path});
    let made: Value = daemon.admin().post("/v1/backup", &request, &[]).unwrap();
    assert_eq!(made["bytes"], std::fs::metadata(&path).unwrap().len());
    assert_eq!(daemon.ask("POST", "/v1/backup", &[], &request.to_string()).status, 409);
    assert_eq!(daemon.ask("POST", "/v1/backup", &[], "{\"path\": \"copy.db\"}").status, 400);
    daemon.as_user("ada", "user").post::<Value, _>("/v1/backup", &request, &[]).unwrap_err();
}

/// Whatever alone is changed of a budget is a change, and is shown as one.
#[test]
fn every_field_of_a_budget_alone_is_a_change() {
    let daemon = Daemon::start();
    let fields = [
        json!({"share": 50}),
        json!({"order": "completion"}),
        json!({"gpus_max": 4}),
        json!({"unallocated_gpus_max": 4}),
        json!({"min_runtime_max": "1h"}),
        json!({"closed": true}),
        json!({"managers": ["eve"]}),
        json!({"members": ["eve"]}),
        json!({"rename_to": "lab/language"}),
    ];
    for mut change in fields {
        let asked = change.to_string();
        change["path"] = json!("lab/nlp");
        let request = json!({"reason": "what if", "budgets": [change], "days": 1});
        let answer: Value = daemon.admin().post("/v1/whatif", &request, &[]).unwrap();
        let lines = answer["difference"].as_array().unwrap();
        assert!(lines.len() == 1 && lines[0].as_str().unwrap().starts_with("lab/nlp "), "{asked}: {lines:?}");
    }
    let request = json!({"reason": "what if", "budgets": [{"path": "lab/nlp", "order": "completion"}], "days": 1});
    let answer: Value = daemon.admin().post("/v1/whatif", &request, &[]).unwrap();
    assert_eq!(answer["difference"], json!(["lab/nlp order priority -> completion"]));
}
