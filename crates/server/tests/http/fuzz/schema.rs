//! The document as data: its operations, and whether a value is of a schema.

use serde_json::Value;

pub(crate) struct Document(pub(crate) Value);

pub(crate) struct Operation<'d> {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) parameters: Vec<&'d Value>,
    /// The kind and the schema of its body.
    pub(crate) body: Option<(&'d str, &'d Value)>,
    pub(crate) responses: &'d Value,
}

impl Document {
    pub(crate) fn operations(&self) -> Vec<Operation<'_>> {
        let paths = self.0["paths"].as_object().expect("paths");
        let of_path = |(path, item): (&String, &'_ Value)| -> Vec<(String, String)> {
            item.as_object().expect("operations").keys().map(|method| (path.clone(), method.clone())).collect()
        };
        paths.iter().flat_map(of_path).map(|(path, method)| self.operation(path, method)).collect()
    }

    fn operation(&self, path: String, method: String) -> Operation<'_> {
        let own = &self.0["paths"][&path][&method];
        let parameters = own["parameters"].as_array().map(|all| all.iter().collect()).unwrap_or_default();
        let content = own["requestBody"]["content"].as_object().and_then(|content| content.iter().next());
        let body = content.map(|(kind, content)| (kind.as_str(), &content["schema"]));
        Operation { method: method.to_uppercase(), path, parameters, body, responses: &own["responses"] }
    }

    /// What a reference refers to.
    pub(crate) fn resolve<'d>(&'d self, schema: &'d Value) -> &'d Value {
        match schema["$ref"].as_str() {
            Some(to) => self.resolve(self.0.pointer(&to[1..]).expect("it leads somewhere")),
            None => schema,
        }
    }

    /// What of a JSON answer is not as its schema says.
    pub(crate) fn breach(&self, operation: &Operation<'_>, status: u16, body: &str) -> Option<String> {
        let content = &operation.responses[status.to_string()]["content"]["application/json"];
        // No body was read of streams, and none is promised of what is about HTTP itself.
        let schema = content.get("schema")?;
        match serde_json::from_str(body) {
            Ok(value) => self.fault("the answer", &value, schema),
            Err(error) => Some(format!("no JSON: {error}")),
        }
    }

    fn fault(&self, place: &str, value: &Value, schema: &Value) -> Option<String> {
        let schema = self.resolve(schema);
        for word in ["oneOf", "anyOf"] {
            if let Some(any) = schema[word].as_array() {
                let faults: Vec<String> = any.iter().map_while(|one| self.fault(place, value, one)).collect();
                return (faults.len() == any.len()).then(|| faults.join(" and "));
            }
        }
        if let Some(fault) = schema["allOf"].as_array().and_then(|all| all.iter().find_map(|one| self.fault(place, value, one))) {
            return Some(fault);
        }
        if let Some(words) = schema["enum"].as_array().filter(|words| !words.contains(value)) {
            return Some(format!("{place}: {value} is none of {words:?}"));
        }
        let kinds: Vec<&str> = match &schema["type"] {
            Value::String(kind) => vec![kind],
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        if !kinds.is_empty() && !kinds.iter().any(|kind| is_kind(value, kind)) {
            return Some(format!("{place}: {value} is no {kinds:?}"));
        }
        if let Some(items) = value.as_array().filter(|_| schema["items"].is_object()) {
            return items.iter().enumerate().find_map(|(index, item)| self.fault(&format!("{place}[{index}]"), item, &schema["items"]));
        }
        let fields = value.as_object()?;
        let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
        if let Some(missing) = required.iter().filter_map(Value::as_str).find(|name| !fields.contains_key(*name)) {
            return Some(format!("{place}: {missing} is missing"));
        }
        fields.iter().find_map(|(name, value)| {
            let schema = schema["properties"].get(name).or_else(|| schema.get("additionalProperties").filter(|s| s.is_object()))?;
            self.fault(&format!("{place}.{name}"), value, schema)
        })
    }
}

fn is_kind(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}
