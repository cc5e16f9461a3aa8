//! `docs/reference/openapi.json` is made of the code: `SNAPSHOTS=overwrite` writes it anew.

use serde_json::Value;
use std::path::Path;
use stipend_server::http::openapi_json;

#[test]
fn the_document_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/openapi.json");
    let now = openapi_json();
    if std::env::var("SNAPSHOTS").is_ok_and(|what| what == "overwrite") {
        std::fs::write(&path, &now).expect("written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == now, "{} is not current: SNAPSHOTS=overwrite writes it anew, read what changes", path.display());
}

#[test]
fn every_reference_leads_somewhere_and_every_operation_is_described() {
    let document: Value = serde_json::from_str(&openapi_json()).expect("JSON");
    assert_eq!(document["openapi"], "3.1.0");
    let mut open = vec![&document];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(to)) = fields.get("$ref") {
                    let to = to.strip_prefix('#').expect("a reference within");
                    assert!(document.pointer(to).is_some(), "{to}");
                }
                open.extend(fields.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    let mut ids = std::collections::BTreeSet::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("operations") {
            assert!(operation["summary"].is_string(), "{method} {path} says nothing");
            assert!(operation["responses"]["503"].is_object(), "{method} {path}");
            assert!(ids.insert(operation["operationId"].to_string()), "{method} {path}: two have one id");
        }
    }
}
