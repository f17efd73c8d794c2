//! `rpd mcp` and `rpd guide`: answers for coding agents.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rpd_tests::run::{Outcome, Rpd, command, skipped};
use rpd_tests::{install, workloads};
use serde_json::{Value, json};

/// A server, and its client's side.
struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    id: u64,
}

impl Server {
    fn start(directory: &Path, options: &[&str]) -> Server {
        let mut child = Command::new(install::rpd())
            .arg("mcp")
            .args(options)
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a server");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut server = Server {
            input: child.stdin.take(),
            output,
            child,
            id: 0,
        };
        let begun = server.ask(
            "initialize",
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}),
        );
        assert_eq!(begun["result"]["protocolVersion"], "2025-06-18");
        server.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    fn send(&mut self, message: Value) {
        let input = self.input.as_mut().expect("an open pipe");
        writeln!(input, "{message}").expect("a server that reads");
    }

    fn begin(&mut self, method: &str, parameters: Value) -> u64 {
        self.id += 1;
        let id = self.id;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}));
        id
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).expect("an object")
    }

    fn ask(&mut self, method: &str, parameters: Value) -> Value {
        let id = self.begin(method, parameters);
        let answer = self.receive();
        assert_eq!(answer["id"], id);
        answer
    }

    /// The result of a tool.
    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        answer["result"].clone()
    }

    fn tools(&mut self) -> Vec<Value> {
        let listed = self.ask("tools/list", json!({}));
        listed["result"]["tools"].as_array().expect("tools").clone()
    }

    /// Closes its input and waits for its end.
    fn end(mut self) {
        self.input = None;
        let status = self.child.wait().expect("an end");
        assert!(status.success(), "{status}");
    }
}

/// A recording in the directory of its outcome, as `out/x_results.db`.
fn recorded() -> Outcome {
    Rpd::new(["--hip-trace", "--kernel-trace", "--memory-copy-trace"])
        .option(["-o", "x"])
        .workload("vector-ops", ["1", "8"])
        .success()
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("a text")
}

// answers-95 and answers-100
#[test]
fn tools_answer_with_the_rows_of_the_command_line() {
    let outcome = recorded();
    let mut server = Server::start(outcome.directory.path(), &[]);
    let path = "out/x_results.db";
    let database = outcome.file("x_results.db");
    for (tool, words, arguments) in [
        (
            "rpd_gaps",
            vec!["gaps"],
            json!({"path": path, "max_tokens": 20_000}),
        ),
        (
            "rpd_kernel",
            vec!["kernel", "addition"],
            json!({"name": "addition", "path": path, "max_tokens": 20_000}),
        ),
        (
            "rpd_stats",
            vec!["stats", "--report", "kern_sum"],
            json!({"report": "kern_sum", "path": path, "max_tokens": 20_000}),
        ),
    ] {
        let result = server.call(tool, arguments);
        let words = words.iter().map(OsStr::new);
        let options = ["-f", "json", "--limit", "0"].map(OsStr::new);
        let printed = command(
            &install::rpd(),
            words.chain([database.as_os_str()]).chain(options),
        );
        let printed: Value = serde_json::from_str(&printed.success().stdout).expect("an object");
        assert_eq!(
            result["structuredContent"]["rows"], printed["rows"],
            "{tool}"
        );
    }
    let mut keys = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let arguments = json!({"path": path, "max_tokens": 1_000, "cursor": cursor});
        let result = server.call("rpd_gaps", arguments);
        assert!(result.to_string().len() <= 4_000, "{result}");
        let content = &result["structuredContent"];
        let rows = content["rows"].as_array().expect("rows");
        keys.extend(rows.iter().map(|row| row["key"].to_string()));
        cursor = content["truncated"]["cursor"].clone();
        if cursor.is_null() {
            assert_eq!(content["truncated"]["total"], keys.len());
            break;
        }
    }
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
    let overview = server.call("rpd_overview", json!({"path": path}));
    assert!(overview.to_string().len() <= 2_400, "{overview}");
    assert!(text(&overview).contains("kernel time"), "{overview}");
    let rows = server.call(
        "rpd_query",
        json!({"path": path, "sql": "SELECT count(*) AS n FROM kernels"}),
    );
    assert_eq!(rows["structuredContent"]["rows"][0]["n"], 32);
    server.end();
}

// answers-96
#[test]
fn paths_outside_the_roots_are_refused_through_links_as_well() {
    let outcome = recorded();
    let root = outcome.directory.path().join("root");
    fs::create_dir(&root).expect("a directory");
    symlink(outcome.file("x_results.db"), root.join("link.db")).expect("a link");
    let mut server = Server::start(&root, &[]);
    let absolute = outcome.file("x_results.db").to_string_lossy().into_owned();
    for path in ["link.db", "../out/x_results.db", absolute.as_str()] {
        let result = server.call("rpd_gaps", json!({"path": path}));
        assert_eq!(result["isError"], true, "{path}");
        assert!(text(&result).contains("not below a root"), "{result}");
    }
    let none = server.call("rpd_gaps", json!({"path": "none.db"}));
    assert_eq!(none["isError"], true);
    server.end();
}

// answers-97
#[test]
fn programs_run_only_when_that_is_allowed_and_only_those_below_a_root() {
    let outcome = recorded();
    let root = outcome.directory.path();
    let mut server = Server::start(root, &[]);
    let names = |tools: Vec<Value>| -> BTreeSet<String> {
        tools
            .iter()
            .filter_map(|tool| Some(tool["name"].as_str()?.to_owned()))
            .collect()
    };
    let tools = server.tools();
    assert!(
        tools
            .iter()
            .all(|tool| tool["annotations"]["readOnlyHint"] == true)
    );
    assert!(
        tools
            .iter()
            .all(|tool| tool["inputSchema"]["additionalProperties"] == false)
    );
    assert!(!names(tools).contains("rpd_record"));
    let refused = server.ask(
        "tools/call",
        json!({"name": "rpd_record", "arguments": {"argv": ["./x"]}}),
    );
    assert_eq!(refused["error"]["code"], -32_602);
    server.end();

    let mut server = Server::start(root, &["--allow-run"]);
    assert!(names(server.tools()).contains("rpd_record"));
    let outside = server.call(
        "rpd_record",
        json!({"argv": [workloads::path("vector-ops"), "1", "1"]}),
    );
    assert!(text(&outside).contains("not below a root"), "{outside}");
    let program = root.join("app");
    fs::copy(workloads::path("vector-ops"), &program).expect("a copy");
    let made = server.call("rpd_record", json!({"argv": ["app", "1", "1"]}));
    let row = &made["structuredContent"]["rows"][0];
    assert_eq!(row["status"], 0, "{made}");
    let recording = PathBuf::from(row["path"].as_str().expect("a path"));
    let overview = server.call("rpd_overview", json!({"path": recording}));
    assert!(overview.get("isError").is_none(), "{overview}");
    server.end();
}

// answers-94 and answers-99
#[test]
fn calls_run_at_once_and_a_cancelled_one_ends_without_an_answer() {
    let outcome = recorded();
    let root = outcome.directory.path();
    fs::copy(workloads::path("spin"), root.join("spin")).expect("a copy");
    let mut server = Server::start(root, &["--allow-run"]);
    let long = server.begin(
        "tools/call",
        json!({"name": "rpd_record", "arguments": {"argv": ["spin"]}}),
    );
    let path = "out/x_results.db";
    // The program does not end by itself, and two questions are answered meanwhile.
    let mut asked: BTreeSet<u64> = ["rpd_gaps", "rpd_breakdown"]
        .into_iter()
        .map(|tool| {
            server.begin(
                "tools/call",
                json!({"name": tool, "arguments": {"path": path}}),
            )
        })
        .collect();
    while !asked.is_empty() {
        let id = server.receive()["id"].as_u64().expect("an id");
        assert!(asked.remove(&id), "{id}");
    }
    server.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": long}}));
    assert_eq!(server.ask("ping", json!({}))["result"], json!({}));
    server.end();
}

#[test]
fn wrong_messages_and_arguments_are_answered_by_errors() {
    let outcome = recorded();
    let mut server = Server::start(outcome.directory.path(), &[]);
    let input = server.input.as_mut().expect("an open pipe");
    writeln!(input, "{{no json").expect("a server that reads");
    assert_eq!(server.receive()["error"]["code"], -32_700);
    server.send(json!({"id": 5, "method": "ping"}));
    assert_eq!(server.receive()["error"]["code"], -32_600);
    assert_eq!(server.ask("no/such", json!({}))["error"]["code"], -32_601);
    for (tool, arguments, part) in [
        ("rpd_gaps", json!({}), "expected path"),
        (
            "rpd_gaps",
            json!({"path": "out", "pth": 1}),
            "did you mean path?",
        ),
        (
            "rpd_stats",
            json!({"path": "out", "report": "kern_sun"}),
            "did you mean kern_sum?",
        ),
        (
            "rpd_gaps",
            json!({"path": "out", "max_tokens": 0}),
            "from 1 to 20000",
        ),
        (
            "rpd_gaps",
            json!({"path": "out", "cursor": "x"}),
            "no row has this key",
        ),
        (
            "rpd_query",
            json!({"path": "out", "sql": "DROP TABLE kernels"}),
            "rpd",
        ),
    ] {
        let result = server.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        assert!(text(&result).contains(part), "{part}: {result}");
    }
    let guide = server.ask("resources/read", json!({"uri": "rpd://guide"}));
    let printed = Rpd::plain(["guide"]).run().success();
    assert_eq!(guide["result"]["contents"][0]["text"], printed.stdout);
    server.end();
}

/// A client that lists the tools and calls one, written for the public package.
const CLIENT: &str = r#"
import asyncio, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main():
    server = StdioServerParameters(command=sys.argv[1], args=["mcp", "--root", sys.argv[2]])
    async with stdio_client(server) as (read, write):
        async with ClientSession(read, write) as session:
            await session.initialize()
            tools = await session.list_tools()
            assert any(tool.name == "rpd_gaps" for tool in tools.tools)
            found = await session.call_tool("rpd_gaps", {"path": "out/x_results.db"})
            found = found.model_dump(by_alias=True)
            assert not found["isError"] and found["structuredContent"]["rows"]
            resources = await session.list_resources()
            assert resources.resources
    print("fine")

asyncio.run(main())
"#;

// answers-94 with the public client, where it is installed
#[test]
fn public_client_lists_and_calls_tools() {
    let python = std::env::var_os("RPD_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    let has_client = Command::new(&python)
        .args(["-c", "import mcp"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !has_client {
        skipped("the public client of MCP", "python3 has no package mcp");
        return;
    }
    let outcome = recorded();
    let words = ["-c".as_ref(), CLIENT.as_ref(), install::rpd().as_os_str()].map(OsStr::to_owned);
    let root = outcome.directory.path().as_os_str().to_owned();
    let done = command(Path::new(&python), words.into_iter().chain([root])).success();
    assert_eq!(done.stdout.trim(), "fine");
}
