//! A browser without a screen, driven by the DevTools protocol over pipes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rpd_tests::run::tool_for;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longest wait for something that the page is to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser with one page.
pub(super) struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    number: u64,
    session: Option<String>,
    events: Vec<Value>,
    _profile: TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.session = None;
        let _ = self.send("Browser.close", json!({}));
        // It ends by itself, or with its pipes.
        let end = Instant::now() + Duration::from_secs(10);
        while Instant::now() < end && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Browser {
    /// Starts the browser of this machine; `None`, and a line about `check`, where there is none.
    pub(super) fn start(check: &str) -> Option<Browser> {
        let program = tool_for(check, "chromium")?;
        let profile = tempfile::tempdir().expect("a directory");
        // The browser reads commands from descriptor 3 and writes to 4.
        let mut command = Command::new("sh");
        let wrapped = "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null";
        command.args(["-c", wrapped, "sh"]).arg(program);
        command.args(["--headless", "--no-sandbox", "--disable-gpu"]);
        command.args(["--remote-debugging-pipe", "--window-size=1400,900"]);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a shell");
        let to = child.stdin.take().expect("a pipe");
        let from = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut browser = Browser {
            child,
            to,
            from,
            number: 0,
            session: None,
            events: Vec::new(),
            _profile: profile,
        };
        let page = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let wanted = json!({"targetId": page["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", wanted);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network", "Accessibility"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    fn send(&mut self, method: &str, parameters: Value) -> std::io::Result<()> {
        self.number += 1;
        let mut message = json!({"id": self.number, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(message.to_string().as_bytes())?;
        self.to.write_all(b"\0")?;
        self.to.flush()
    }

    /// Calls a method of the protocol.
    pub(super) fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.send(method, parameters).expect("the browser runs");
        loop {
            let mut message = Vec::new();
            let read = self.from.read_until(0, &mut message).expect("read");
            assert_ne!(read, 0, "the browser has ended before it answered {method}");
            message.pop();
            let message: Value = serde_json::from_slice(&message).expect("JSON");
            if message["id"] == self.number {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    /// The value of an expression of JavaScript; promises are waited for.
    pub(super) fn value(&mut self, expression: &str) -> Value {
        let wanted = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let result = self.call("Runtime.evaluate", wanted);
        assert!(
            result["exceptionDetails"].is_null(),
            "{expression}: {}",
            result["exceptionDetails"]
        );
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub(super) fn until(&mut self, expression: &str) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let value = self.value(expression);
            if !matches!(value, Value::Null | Value::Bool(false)) {
                return value;
            }
            if Instant::now() > end {
                let status = self.value("document.getElementById('status')?.textContent");
                panic!(
                    "{expression} is never true; status {status}; {:?}",
                    self.complaints()
                );
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Opens an address, and waits until the timeline is drawn.
    pub(super) fn open(&mut self, address: &str) {
        // A change behind `#` alone loads nothing.
        self.call("Page.navigate", json!({"url": "about:blank"}));
        self.call("Page.navigate", json!({"url": address}));
        self.until("window.rpdView?.isReady");
    }

    /// Opens a file.
    pub(super) fn open_file(&mut self, path: &Path) {
        self.open(&format!("file://{}", path.display()));
    }

    /// Presses a key.
    pub(super) fn key(&mut self, key: &str) {
        self.key_with(key, 0);
    }

    /// Presses a key together with others: 2 is Ctrl, 8 Shift.
    pub(super) fn key_with(&mut self, key: &str, modifiers: u32) {
        let mut press = json!({"type": "keyDown", "key": key, "modifiers": modifiers});
        match key {
            "Enter" => press["text"] = json!("\r"),
            _ if key.len() == 1 && modifiers & 2 == 0 => press["text"] = json!(key),
            _ => {}
        }
        self.call("Input.dispatchKeyEvent", press);
        let release = json!({"type": "keyUp", "key": key, "modifiers": modifiers});
        self.call("Input.dispatchKeyEvent", release);
    }

    /// Moves the pointer with its button pressed.
    pub(super) fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        let steps = [
            ("mouseMoved", from, 0),
            ("mousePressed", from, 1),
            ("mouseMoved", ((from.0 + to.0) / 2.0, to.1), 1),
            ("mouseMoved", to, 1),
            ("mouseReleased", to, 0),
        ];
        for (kind, (x, y), buttons) in steps {
            let button = if kind == "mouseMoved" && buttons == 0 {
                "none"
            } else {
                "left"
            };
            let event = json!({"type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": 1});
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Errors of scripts, refusals of the content security policy and failed loads since the start.
    pub(super) fn complaints(&mut self) -> Vec<String> {
        // What has happened has been told before the answer.
        self.call("Runtime.evaluate", json!({"expression": "0"}));
        let wanted = |event: &&Value| {
            ["Runtime.exceptionThrown", "Log.entryAdded"]
                .contains(&event["method"].as_str().unwrap_or(""))
        };
        let found = self.events.iter().filter(wanted);
        found.map(|event| event["params"].to_string()).collect()
    }
}
