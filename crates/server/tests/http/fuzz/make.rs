//! Values, right and wrong, from schemas.

use super::schema::{Document, Operation};
use serde_json::{Map, Value, json};
use stipend_server::client::escape;

/// Words that mean something to the daemon, so that some requests get far.
const WORDS: [&str; 24] = [
    "lab",
    "lab/nlp",
    "lab/vision",
    "lab/new",
    "ada",
    "boss",
    "*",
    "h100",
    "h100-1",
    "h100-2",
    "/bin/true",
    "5m",
    "1h30m",
    "0s",
    "priority",
    "fifo",
    "1-3",
    "0,2%1",
    "/",
    "/tmp",
    "waiting",
    "submitted",
    "a reason",
    "1",
];

/// Words that are trouble elsewhere.
const TROUBLE: [&str; 16] = [
    "",
    " ",
    "\u{0}",
    "\n",
    "../../etc/passwd",
    "'; DROP TABLE workloads; --",
    "ä/ö",
    "\u{202e}abc",
    "%s%n",
    "{}",
    "null",
    "-1",
    "1e400",
    "9999999999999999999h",
    "1-4294967295",
    "a//b",
];

pub(crate) struct Maker<'d> {
    state: u64,
    document: &'d Document,
}

pub(crate) struct Request {
    head: String,
    body: Vec<u8>,
}

impl Request {
    pub(crate) fn bytes(&self, token: Option<&str>) -> Vec<u8> {
        let token = token.map_or(String::new(), |token| format!("authorization: Bearer {token}\r\n"));
        let mut bytes = format!("{}{token}\r\n", self.head).into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

impl<'d> Maker<'d> {
    pub(crate) fn new(seed: u64, document: &'d Document) -> Maker<'d> {
        Maker { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), document }
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    pub(crate) fn request(&mut self, operation: &Operation<'_>) -> Request {
        let (mut path, mut query, mut headers) = (operation.path.clone(), Vec::new(), String::new());
        for parameter in &operation.parameters {
            let name = parameter["name"].as_str().expect("a name");
            let value = self.text_of(name, &parameter["schema"]);
            match parameter["in"].as_str() {
                Some("path") => path = path.replace(&format!("{{{name}}}"), &escape(&value)),
                // A wait that states no time is a long one.
                Some("query") if name == "timeout_s" || self.one_in(3) => query.push(format!("{name}={}", escape(&value))),
                Some("header") if self.one_in(4) => headers.push_str(&format!("{name}: {}\r\n", value.replace(['\r', '\n', '\0'], ""))),
                _ => {}
            }
        }
        if self.one_in(25) {
            query.push(self.of(&["nobody=1", "limit", "%zz", "a=%ff", "&&&"]).to_string());
        }
        let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
        let (kind, body) = match operation.body {
            Some((kind, schema)) if kind == "application/json" => (kind, self.json(schema)),
            Some((kind, _)) => (kind, self.sheet()),
            None if self.one_in(10) => ("application/json", b"{}".to_vec()),
            None => ("application/json", Vec::new()),
        };
        let kind = if self.one_in(40) { "application/x-www-form-urlencoded" } else { kind };
        let method = &operation.method;
        let length = body.len();
        let head = format!(
            "{method} {path}{query} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n{headers}"
        );
        Request { head, body }
    }

    /// A parameter's value as text.
    fn text_of(&mut self, name: &str, schema: &Value) -> String {
        // Nobody waits for long here.
        if name == "timeout_s" {
            return self.of(&["0", "0", "-1", "x"]).into();
        }
        // The daemon's own nodes are named, so that most drains are of something.
        if name == "name" && !self.one_in(4) {
            return self.of(&["h100-1", "h100-2"]).into();
        }
        match self.value(schema, 0) {
            Value::String(text) => text,
            value => value.to_string(),
        }
    }

    /// A JSON body; of ten one is broken.
    fn json(&mut self, schema: &Value) -> Vec<u8> {
        let mut bytes = self.value(schema, 0).to_string().into_bytes();
        match self.below(20) {
            0 => bytes.truncate(self.below(bytes.len() + 1)),
            1 => {
                let (at, byte) = (self.below(bytes.len()), self.next() as u8);
                bytes[at] = byte;
            }
            2 => bytes = self.of(&[&b""[..], b"null", b"[]", b"{}", b"\xff\xfe", b"[[[[[[[[", b"1e999", b"\"\\ud800\""]).to_vec(),
            3 => bytes = vec![b'['; 20_000],
            _ => {}
        }
        bytes
    }

    fn sheet(&mut self) -> Vec<u8> {
        let mut text = String::from("id,path,pool,share_percent,gpus_max,unallocated_gpus_max,min_runtime_max,order,managers,members\n");
        for _ in 0..self.below(5) {
            let cells: Vec<String> = (0..10).map(|_| if self.one_in(3) { self.word() } else { String::new() }).collect();
            text.push_str(&format!("{}\n", cells.join(",")));
        }
        let share = self.below(70);
        text.push_str(&format!(",lab/nlp,h100,{share},,,,,,\n"));
        if self.one_in(4) {
            let at = self.below(text.len());
            text.truncate(text.floor_char_boundary(at));
        }
        text.into_bytes()
    }

    fn word(&mut self) -> String {
        match self.below(12) {
            0 => self.of(&TROUBLE).into(),
            1 => self.next().to_string(),
            2 if self.one_in(20) => "x".repeat(5000),
            _ => self.of(&WORDS).into(),
        }
    }

    fn number(&mut self) -> Value {
        match self.below(8) {
            0 => json!(self.of(&[-1, i64::MIN, i64::MAX, 1 << 31, 1 << 32, 1 << 53])),
            1 => json!(u64::MAX),
            2 => json!(self.below(100)),
            _ => json!(self.below(9)),
        }
    }

    /// A value of a schema, or (rarely) of another.
    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        if self.one_in(30) || depth > 6 {
            return self.stray();
        }
        let schema = self.document.resolve(schema);
        if let Some(any) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
            let one = &any[self.below(any.len())];
            return self.value(one, depth + 1);
        }
        if let Some(all) = schema["allOf"].as_array() {
            return all.iter().fold(json!({}), |mut whole, one| {
                if let (Value::Object(whole), Value::Object(part)) = (&mut whole, self.value(one, depth + 1)) {
                    whole.extend(part);
                }
                whole
            });
        }
        if let Some(words) = schema["enum"].as_array() {
            return words[self.below(words.len())].clone();
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds[self.below(kinds.len())].clone(),
            kind => kind.clone(),
        };
        match kind.as_str() {
            Some("string") => json!(self.word()),
            Some("integer") => self.number(),
            Some("number") if self.one_in(2) => json!(self.below(100) as f64 / 3.0),
            Some("number") => self.number(),
            Some("boolean") => json!(self.one_in(2)),
            Some("array") => (0..self.below(4)).map(|_| self.value(&schema["items"], depth + 1)).collect(),
            Some("object") => self.object(schema, depth),
            Some("null") => Value::Null,
            _ => self.stray(),
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let mut fields = Map::new();
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            let needed = required.contains(&json!(name)) || ["budget", "command", "reason", "path", "share"].contains(&name.as_str());
            if needed && !self.one_in(12) || self.one_in(4) {
                let value = self.field(name, schema, depth);
                fields.insert(name.clone(), value);
            }
        }
        if schema["additionalProperties"].is_object() {
            for _ in 0..self.below(3) {
                fields.insert(self.word(), self.value(&schema["additionalProperties"], depth + 1));
            }
        }
        if self.one_in(40) {
            fields.insert("unknown".into(), json!(1));
        }
        Value::Object(fields)
    }

    /// A field's value: mostly one with which the request gets somewhere.
    fn field(&mut self, name: &str, schema: &Value, depth: usize) -> Value {
        let likely = match name {
            _ if self.one_in(3) => None,
            "budget" => Some(json!(self.of(&["lab/nlp", "lab/vision"]))),
            "command" => Some(json!(["/bin/true"])),
            "min_runtime" | "time_limit" | "expected_runtime" | "checkpoint_every" => Some(json!(self.of(&["0s", "1m", "5m", "1h"]))),
            "based_on" => Some(json!(self.below(60))),
            "path" if depth > 0 => Some(json!(self.of(&["lab/nlp", "lab/vision", "lab/new"]))),
            "pools" | "features" | "after" | "array" | "workdir" | "checkpoint_command" | "restore_command" => Some(Value::Null),
            _ => None,
        };
        likely.filter(|value| !value.is_null()).unwrap_or_else(|| self.value(schema, depth + 1))
    }

    fn stray(&mut self) -> Value {
        match self.below(8) {
            0 => Value::Null,
            1 => json!([]),
            2 => json!({}),
            3 => json!(-0.5),
            4 => json!([[1], {"a": null}]),
            5 => json!(true),
            6 => json!(self.word()),
            _ => self.number(),
        }
    }
}
