//! Answers of tools that keep a number of tokens: rows are left out from the end, and a cursor continues.

use rpd_core::text::foreign;
use serde_json::{Map, Value, json};

/// Bytes that count as a token.
const TOKEN: usize = 4;
/// Letters of a name in text.
const NAME: usize = 60;

/// What a call wants of an answer.
pub(super) struct Wish {
    pub(super) tokens: usize,
    /// Key, or number, of the last row that was had before.
    pub(super) cursor: Option<String>,
}

/// An error of a tool: a result, since the call itself was right.
pub(super) fn error(text: &str) -> Value {
    json!({"isError": true, "content": [{"type": "text", "text": foreign::shown_lines(text)}]})
}

/// The result of a tool from what rpd printed as JSON: an object with rows, or a list of rows.
pub(super) fn result(answer: Value, wish: &Wish) -> Value {
    let (mut head, rows) = match answer {
        Value::Array(rows) => (Map::new(), rows),
        Value::Object(mut object) => {
            let rows = match object.remove("rows") {
                Some(Value::Array(rows)) => rows,
                _ => Vec::new(),
            };
            // What the tool's schema and the command line have is not repeated.
            for part in [
                "columns",
                "sections",
                "inputs",
                "provenance",
                "totals",
                "schema",
                "rpd",
            ] {
                object.remove(part);
            }
            (object, rows)
        }
        other => return error(&format!("rpd printed no rows: {other}")),
    };
    let total = rows.len();
    let first = match &wish.cursor {
        None => 0,
        Some(cursor) => match (0..total).find(|number| id(&rows[*number], *number) == *cursor) {
            Some(number) => number + 1,
            None => return error(&format!("cursor {cursor}: no row has this key")),
        },
    };
    let mut shown: Vec<Value> = rows.into_iter().skip(first).collect();
    let wanted = shown.len();
    let budget = wish.tokens.saturating_mul(TOKEN);
    loop {
        let is_cut = shown.len() < wanted;
        let cursor = shown
            .last()
            .filter(|_| is_cut)
            .map(|row| id(row, first + shown.len() - 1));
        head.insert(
            "truncated".to_owned(),
            json!({"shown": shown.len(), "total": total, "cursor": cursor}),
        );
        let text = text(&head, &shown, wanted - shown.len());
        let mut object = head.clone();
        object.insert("rows".to_owned(), Value::Array(shown.clone()));
        let made = json!({
            "content": [{"type": "text", "text": text}],
            "structuredContent": object,
        });
        let size = made.to_string().len();
        if size <= budget {
            return made;
        }
        // The parts beside the rows go before the last row does.
        if shown.len() <= 1 {
            let least = ["missing", "parameters", "window", "warnings"];
            if let Some(part) = least.iter().find(|part| head.contains_key(**part)) {
                head.remove(*part);
                continue;
            }
            return match shown.first() {
                Some(row) => error(&format!(
                    "max_tokens is too small: the row {} needs {}",
                    id(row, first),
                    size.div_ceil(TOKEN)
                )),
                None => made,
            };
        }
        // Rows are about as long as each other: leave out as many as are too much, at least one.
        let rows = shown.len();
        let keep = rows * budget / size;
        shown.truncate(keep.clamp(1, rows - 1));
    }
}

/// What identifies a row: its key, or its number from 0.
fn id(row: &Value, number: usize) -> String {
    row.get("key")
        .and_then(Value::as_str)
        .map_or_else(|| number.to_string(), str::to_owned)
}

/// The rows as text: numbers with four digits, names shortened, and without what is not known.
fn text(head: &Map<String, Value>, rows: &[Value], left: usize) -> String {
    let mut lines = Vec::new();
    for warning in head
        .get("warnings")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        lines.push(format!("warning: {}", short(&warning["text"])));
    }
    for row in rows {
        let fields = row.as_object().into_iter().flatten();
        let known = fields.filter(|(_, value)| !value.is_null());
        let fields: Vec<String> = known
            .map(|(name, value)| format!("{name}={}", short(value)))
            .collect();
        lines.push(fields.join(" "));
    }
    if left > 0 {
        lines.push(format!("{left} more rows: call again with the cursor"));
    }
    if lines.is_empty() {
        lines.push("no rows".to_owned());
    }
    lines.join("\n")
}

fn short(value: &Value) -> String {
    match value {
        Value::String(text) => {
            let text = foreign::shown(text);
            match text.char_indices().nth(NAME) {
                Some((end, _)) => format!("{}...", &text[..end]),
                None => text.into_owned(),
            }
        }
        Value::Number(number) if number.is_f64() => {
            let number = number.as_f64().unwrap_or(0.0);
            let digits = if number == 0.0 {
                0
            } else {
                3 - number.abs().log10().floor() as i32
            };
            let factor = 10_f64.powi(digits.clamp(-300, 300));
            format!("{}", (number * factor).round() / factor)
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(rows: usize) -> Value {
        let rows: Vec<Value> = (0..rows)
            .map(|number| json!({"key": format!("gap|{number}"), "gap_ns": number * 1_000, "site": null}))
            .collect();
        json!({"command": "gaps", "rows": rows, "missing": [{"what": "x".repeat(100)}]})
    }

    // answers-95
    #[test]
    fn rows_are_continued_by_the_cursor_without_loss_or_repeat() {
        let mut keys = Vec::new();
        let mut cursor = None;
        loop {
            let wish = Wish {
                tokens: 500,
                cursor,
            };
            let result = result(answer(143), &wish);
            assert!(result.to_string().len() <= 2_000);
            let content = &result["structuredContent"];
            let rows = content["rows"].as_array().expect("rows");
            keys.extend(rows.iter().map(|row| row["key"].clone()));
            assert_eq!(content["truncated"]["total"], 143);
            match content["truncated"]["cursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => break,
            }
        }
        let all: Vec<Value> = (0..143)
            .map(|number| json!(format!("gap|{number}")))
            .collect();
        assert_eq!(keys, all);
    }

    #[test]
    fn row_that_alone_is_too_long_is_an_error() {
        let long = json!({"rows": [{"key": "k", "name": "n".repeat(5_000)}]});
        let wish = Wish {
            tokens: 100,
            cursor: None,
        };
        let result = result(long, &wish);
        assert_eq!(result["isError"], true);
        let text = result["content"][0]["text"].as_str().expect("a text");
        assert!(text.starts_with("max_tokens is too small"), "{text}");
    }

    #[test]
    fn text_leaves_out_what_is_not_known_and_shortens_names() {
        let row = json!({"key": "k", "a": null, "share": 0.123_456, "name": "n".repeat(100), "line": "a\nb"});
        let text = text(&Map::new(), &[row], 3);
        assert!(!text.contains("a="), "{text}");
        assert!(text.contains("share=0.1235"), "{text}");
        assert!(
            text.contains(&format!("name={}...", "n".repeat(60))),
            "{text}"
        );
        assert!(text.contains("line=a\\nb"), "{text}");
        assert!(
            text.ends_with("3 more rows: call again with the cursor"),
            "{text}"
        );
    }
}
