//! Calls of tools: arguments are checked, and rpd answers as on the command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use rpd_core::text::near::nearest;
use serde_json::{Map, Value, json};

use super::shape::{self, Wish};
use super::table::{Kind, LONGEST, Place, TOOLS, Tool};
use super::{Refusal, WRONG_PARAMETERS, child};

/// Tokens of an answer unless a call says otherwise, and at most.
const TOKENS: (u64, u64) = (2_000, 20_000);
/// Tokens of an overview.
const OVERVIEW: u64 = 600;
/// Time of a question about recordings.
const PATIENCE: Duration = Duration::from_secs(600);
/// Seconds that a program may run unless a call says otherwise.
const SECONDS: u64 = 600;

/// The server's settings.
pub(super) struct Server {
    /// Directories below which recordings and programs are, resolved.
    pub(super) roots: Vec<PathBuf>,
    /// Whether programs may be run.
    pub(super) may_run: bool,
}

/// Number of recordings that this server has made.
static MADE: AtomicU32 = AtomicU32::new(0);

impl Server {
    fn tools(&self) -> impl Iterator<Item = &'static Tool> {
        let may_run = self.may_run;
        TOOLS.iter().filter(move |tool| may_run || !tool.runs)
    }

    /// The tools as clients list them.
    pub(super) fn list(&self) -> Vec<Value> {
        self.tools().map(described).collect()
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// When there is no such tool. What is wrong with arguments is a result.
    pub(super) fn call(&self, parameters: &Value, cancel: &AtomicBool) -> Result<Value, Refusal> {
        let name = parameters
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let tool = self.tools().find(|tool| tool.name == name);
        let tool = tool.ok_or_else(|| (WRONG_PARAMETERS, format!("there is no tool {name}")))?;
        let none = Map::new();
        let given = parameters
            .get("arguments")
            .and_then(Value::as_object)
            .unwrap_or(&none);
        Ok(self
            .answer(tool, given, cancel)
            .unwrap_or_else(|text| shape::error(&text)))
    }

    fn answer(
        &self,
        tool: &Tool,
        given: &Map<String, Value>,
        cancel: &AtomicBool,
    ) -> Result<Value, String> {
        check_names(tool, given)?;
        if tool.runs {
            return self.record(tool, given, cancel);
        }
        let usual = match tool.name {
            "rpd_overview" => OVERVIEW,
            _ => TOKENS.0,
        };
        let tokens = number(given, "max_tokens", TOKENS.1)?.unwrap_or(usual);
        let wish = Wish {
            tokens: tokens as usize,
            cursor: text(given, "cursor")?,
        };
        let mut words = self.words(tool, given)?;
        let limit = match tool.name {
            "rpd_query" if given.contains_key("max_rows") => None,
            "rpd_query" => Some("100"),
            "rpd_source" => None,
            _ => Some("0"),
        };
        words.extend(
            limit
                .into_iter()
                .flat_map(|limit| ["--limit".into(), limit.into()]),
        );
        words.extend(["-f".into(), "json".into()]);
        let done = child::run(&words, None, cancel, PATIENCE).map_err(|error| error.to_string())?;
        let answer: Result<Value, _> = serde_json::from_slice(&done.output);
        match (done.status.code(), answer) {
            // A recording that holds nothing for the question is an answer as well.
            (Some(0 | 7), Ok(answer)) => Ok(shape::result(answer, &wish)),
            (_, Ok(answer)) if answer.get("error").is_some() => Err(answer["error"]["text"]
                .as_str()
                .unwrap_or_default()
                .to_owned()),
            _ => Err(last_line(&done)),
        }
    }

    /// The command line of a question.
    fn words(&self, tool: &Tool, given: &Map<String, Value>) -> Result<Vec<OsString>, String> {
        let mut words: Vec<OsString> = tool.command.iter().map(OsString::from).collect();
        for (name, kind, place, is_needed, _) in tool.arguments {
            let Some(value) = given.get(*name).filter(|value| !value.is_null()) else {
                if *is_needed {
                    return Err(format!("{}: expected {name}", tool.name));
                }
                continue;
            };
            if *place == Place::Server {
                continue;
            }
            let word = self.word(name, *kind, value)?;
            match place {
                // One word, so that no value is taken for an option.
                Place::After(option) => {
                    let mut joined = OsString::from(format!("{option}="));
                    joined.push(word);
                    words.push(joined);
                }
                Place::Alone => {
                    let is_option = word.to_string_lossy().starts_with('-');
                    if is_option {
                        return Err(format!("{name}: it begins with a dash"));
                    }
                    words.push(word);
                }
                Place::Server => {}
            }
        }
        Ok(words)
    }

    /// The value of an argument as a word.
    fn word(&self, name: &str, kind: Kind, value: &Value) -> Result<OsString, String> {
        let text = || {
            value
                .as_str()
                .ok_or_else(|| format!("{name}: expected a text"))
        };
        match kind {
            Kind::Path => Ok(self.path(text()?)?.into_os_string()),
            Kind::Text => Ok(text()?.into()),
            Kind::Number(most) => match value.as_u64() {
                Some(number) if (1..=most).contains(&number) => Ok(number.to_string().into()),
                _ => Err(format!("{name}: expected a number from 1 to {most}")),
            },
            Kind::Word(known) => {
                let text = text()?;
                if known.contains(&text) {
                    return Ok(text.into());
                }
                let near = nearest(text, known.iter().copied());
                let hint = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
                Err(format!(
                    "{name}: {text} is none of {}{hint}",
                    known.join(", ")
                ))
            }
            Kind::Command => Err(format!("{name}: expected a list of words")),
        }
    }

    /// A path below a root, with links resolved.
    fn path(&self, text: &str) -> Result<PathBuf, String> {
        let given = Path::new(text);
        let full = match self.roots.first() {
            Some(root) => root.join(given),
            None => given.to_owned(),
        };
        let resolved = full.canonicalize();
        let resolved = resolved.map_err(|error| format!("{text}: {error}"))?;
        if self.roots.iter().any(|root| resolved.starts_with(root)) {
            return Ok(resolved);
        }
        Err(format!(
            "{text} is not below a root of this server (rpd mcp --root)"
        ))
    }

    /// Runs a program under rpd.
    fn record(
        &self,
        tool: &Tool,
        given: &Map<String, Value>,
        cancel: &AtomicBool,
    ) -> Result<Value, String> {
        let argv = given.get("argv").and_then(Value::as_array);
        let argv =
            argv.and_then(|words| words.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
        let argv = argv.filter(|words| !words.is_empty());
        let argv = argv.ok_or("argv: expected a list of words, the program first")?;
        let program = self.path(argv[0])?;
        let directory = match text(given, "cwd")? {
            Some(directory) => self.path(&directory)?,
            None => self.roots[0].clone(),
        };
        let seconds = number(given, "timeout_s", LONGEST)?.unwrap_or(SECONDS);
        let output = self.new_directory(tool.name)?;
        let mut words = self.words(tool, given)?;
        words.extend(["-d".into(), output.clone().into_os_string()]);
        if tool.name == "rpd_record" {
            words.extend(["-o".into(), "run".into()]);
        } else {
            words.extend(["-f".into(), "json".into()]);
        }
        words.extend(["--".into(), program.into_os_string()]);
        words.extend(argv[1..].iter().map(OsString::from));
        let limit = Duration::from_secs(seconds);
        let done = child::run(&words, Some(&directory), cancel, limit)
            .map_err(|error| error.to_string())?;
        if done.is_late {
            return Err(format!(
                "the program was ended after {seconds} s; {}",
                last_line(&done)
            ));
        }
        let row = json!({
            "key": format!("recording|{}", output.display()),
            "path": output.display().to_string(),
            "status": done.status.code(),
            "messages": last_line(&done),
        });
        let wish = Wish {
            tokens: TOKENS.0 as usize,
            cursor: None,
        };
        Ok(shape::result(json!([row]), &wish))
    }

    /// A directory that is not there yet, below the first root.
    fn new_directory(&self, name: &str) -> Result<PathBuf, String> {
        loop {
            let number = MADE.fetch_add(1, Ordering::Relaxed) + 1;
            let path = self.roots[0].join(format!("{name}-{number}"));
            if !path.try_exists().map_err(|error| error.to_string())? {
                return Ok(path);
            }
        }
    }
}

fn described(tool: &Tool) -> Value {
    let mut properties = Map::new();
    let mut needed = Vec::new();
    for (name, kind, _, is_needed, about) in tool.arguments {
        let mut property = match kind {
            Kind::Path | Kind::Text => json!({"type": "string"}),
            Kind::Number(most) => json!({"type": "integer", "minimum": 1, "maximum": most}),
            Kind::Word(known) => json!({"type": "string", "enum": known}),
            Kind::Command => json!({"type": "array", "items": {"type": "string"}, "minItems": 1}),
        };
        property["description"] = (*about).into();
        properties.insert((*name).to_owned(), property);
        needed.extend(is_needed.then_some(*name));
    }
    if !tool.runs {
        let tokens = json!({
            "type": "integer", "minimum": 1, "maximum": TOKENS.1,
            "description": "Greatest size of the answer; rows are left out from the end",
        });
        properties.insert("max_tokens".to_owned(), tokens);
        let cursor = json!({"type": "string", "description": "Cursor of the answer to continue"});
        properties.insert("cursor".to_owned(), cursor);
    }
    json!({
        "name": tool.name,
        "description": tool.about,
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": needed,
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": !tool.runs, "destructiveHint": false, "openWorldHint": tool.runs},
    })
}

/// Refuses arguments that the tool does not have.
fn check_names(tool: &Tool, given: &Map<String, Value>) -> Result<(), String> {
    let own = tool.arguments.iter().map(|argument| argument.0);
    let common: &[&str] = if tool.runs {
        &[]
    } else {
        &["max_tokens", "cursor"]
    };
    let known: Vec<&str> = own.chain(common.iter().copied()).collect();
    for name in given.keys() {
        if !known.contains(&name.as_str()) {
            let near = nearest(name, known.iter().copied());
            let hint = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
            return Err(format!("{}: it has no argument {name}{hint}", tool.name));
        }
    }
    Ok(())
}

fn text(given: &Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match given.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("{name}: expected a text")),
    }
}

fn number(given: &Map<String, Value>, name: &str, most: u64) -> Result<Option<u64>, String> {
    match given.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64() {
            Some(number) if (1..=most).contains(&number) => Ok(Some(number)),
            _ => Err(format!("{name}: expected a number from 1 to {most}")),
        },
    }
}

/// The last line that rpd wrote about what it did.
fn last_line(done: &child::Done) -> String {
    let last = done
        .messages
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty());
    last.map_or_else(|| format!("rpd ended with {}", done.status), str::to_owned)
}
