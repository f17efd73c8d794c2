//! `rpd view`: tiles, the local server and the page, which a real browser shows.

mod browser;

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use browser::Browser;
use rpd_tests::install;
use rpd_tests::outputs::Database;
use rpd_tests::run::{Outcome, Rpd, command, skipped};
use serde_json::Value;
use tempfile::TempDir;

const TRACES: [&str; 6] = [
    "--hip-trace",
    "--kernel-trace",
    "--memory-copy-trace",
    "--memory-allocation-trace",
    "--marker-trace",
    "--stacks=native",
];

/// A database of two threads that copy and run kernels.
fn recorded() -> &'static Path {
    static RECORDED: OnceLock<PathBuf> = OnceLock::new();
    RECORDED.get_or_init(|| {
        let options = Rpd::new(TRACES).option(["-o", "x"]);
        let outcome = options.workload("vector-ops", ["2", "20"]).success();
        let path = outcome.file("_results.db");
        // Kept for all tests of this process.
        let _ = outcome.directory.keep();
        path
    })
}

/// A copy of the database in a directory of its own.
fn copied() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("x_results.db");
    fs::copy(recorded(), &path).expect("copied");
    (directory, path)
}

fn view<'a>(words: impl IntoIterator<Item = &'a str>) -> Outcome {
    command(&install::rpd(), ["view"].into_iter().chain(words))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of letters")
}

/// A server of the timeline, with what it printed.
struct Viewing {
    child: Child,
    address: String,
    _cache: TempDir,
}

impl Drop for Viewing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Viewing {
    fn start(words: &[&str]) -> Viewing {
        let cache = tempfile::tempdir().expect("a directory");
        let mut started = Command::new(install::rpd());
        started.args(["view", "--no-browser"]).args(words);
        started.env("XDG_CACHE_HOME", cache.path());
        started.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = started.process_group(0).spawn().expect("started");
        let mut line = String::new();
        let printed = child.stdout.take().expect("a pipe");
        BufReader::new(printed)
            .read_line(&mut line)
            .expect("a line");
        assert!(line.contains("/#k="), "{line:?}");
        Viewing {
            child,
            address: line.trim_end().to_owned(),
            _cache: cache,
        }
    }

    fn token(&self) -> &str {
        self.address.split_once("#k=").expect("a token").1
    }

    fn host(&self) -> &str {
        let (host, _) = self.address.split_once("/#k=").expect("a token");
        host.strip_prefix("http://").expect("an address")
    }

    /// Sends the head of a request, and returns the answer.
    fn ask(&self, head: &str) -> String {
        let mut connection = TcpStream::connect(self.host()).expect("connected");
        exchange(&mut connection, head)
    }

    fn get(&self, path: &str, lines: &str) -> String {
        let host = self.host();
        self.ask(&format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n"
        ))
    }
}

fn exchange(connection: &mut (impl std::io::Read + std::io::Write), head: &str) -> String {
    // The server may answer, and close, before it has read all.
    let _ = connection.write_all(head.as_bytes());
    let mut answer = Vec::new();
    let _ = connection.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("none")
}

// answers-86 and answers-87
#[test]
fn server_gives_data_only_to_its_own_page_with_the_token() {
    let (_directory, path) = copied();
    let viewing = Viewing::start(&[text(&path)]);
    let token = format!("X-Rpd-Token: {}\r\n", viewing.token());
    assert_eq!(viewing.token().len(), 32);
    let data = "/data/0/0/0/0";
    assert_eq!(status(&viewing.get(data, &token)), "200");
    // Without data, the page is everybody's.
    let page = viewing.get("/", "");
    assert_eq!(status(&page), "200");
    assert!(
        !page.contains(viewing.token()) && !page.contains("vector-ops"),
        "{page}"
    );
    for line in [
        "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
         frame-ancestors 'none'; base-uri 'none'; form-action 'none'\r\n",
        "X-Content-Type-Options: nosniff\r\n",
        "Referrer-Policy: no-referrer\r\n",
        "Cross-Origin-Resource-Policy: same-origin\r\n",
        "Cross-Origin-Opener-Policy: same-origin\r\n",
        "Cache-Control: no-store\r\n",
    ] {
        assert!(page.contains(line), "{line}: {page}");
    }
    let port = viewing.host().rsplit_once(':').expect("a port").1;
    let other = format!("X-Rpd-Token: {}\r\n", "0".repeat(32));
    let long = format!("X-Long: {}\r\n", "x".repeat(9 << 10));
    let host = viewing.host().to_owned();
    let with_host = |host: &str| format!("GET {data} HTTP/1.1\r\nHost: {host}\r\n{token}\r\n");
    let with = |lines: &str| format!("GET {data} HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n");
    let method = |method: &str| format!("{method} {data} HTTP/1.1\r\nHost: {host}\r\n{token}\r\n");
    let path_of = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{token}\r\n");
    let requests = [
        (with(""), "403"),
        (with(&other), "403"),
        (with(&format!("{}\r\n", &token[..token.len() - 4])), "403"),
        (with(&format!("{token}{token}")), "403"),
        (with_host("evil.example"), "403"),
        (with_host(&format!("evil.example:{port}")), "403"),
        (with_host("127.0.0.1"), "403"),
        (with_host("127.0.0.1:1"), "403"),
        (with_host(&format!("127.0.0.1:0{port}")), "403"),
        (format!("GET {data} HTTP/1.1\r\n{token}\r\n"), "403"),
        (with(&format!("{token}Host: evil.example\r\n")), "403"),
        (
            with(&format!("{token}Origin: http://evil.example\r\n")),
            "403",
        ),
        (with(&format!("{token}Origin: null\r\n")), "403"),
        (
            with(&format!("{token}Origin: http://127.0.0.1:1\r\n")),
            "403",
        ),
        (
            with(&format!("{token}Sec-Fetch-Site: cross-site\r\n")),
            "403",
        ),
        (
            with(&format!("{token}Sec-Fetch-Site: same-site\r\n")),
            "403",
        ),
        (method("OPTIONS"), "403"),
        (method("POST"), "405"),
        (method("PUT"), "405"),
        (method("HEAD"), "405"),
        (path_of("/../../etc/passwd"), "404"),
        (path_of("/data/../0"), "404"),
        (path_of("/data/0/0/0/0?x"), "404"),
        (path_of("/data/0/0/0/-1"), "404"),
        (path_of("/data/9/0/0/0"), "404"),
        (path_of("/data/4/0/0/99999999999999999999999"), "404"),
        (path_of("/data/4/0/0/18446744073709551615"), "204"),
        (path_of("/data/0/4294967296/0/0"), "404"),
        (path_of("/site/0/0/0"), "404"),
        (path_of("/sql"), "404"),
        (with(&format!("{token}{long}")), "431"),
        ("nonsense\r\n\r\n".to_owned(), "400"),
    ];
    for (request, expected) in &requests {
        let answer = viewing.ask(request);
        assert_eq!(status(&answer), *expected, "{request}: {answer}");
        let (head, content) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(content.is_empty(), "{request}: {answer}");
        assert!(!head.contains("Access-Control"), "{answer}");
    }
    // Ours by any name of the machine itself.
    for host in ["localhost", "[::1]"] {
        let origin = format!("Origin: http://{host}:{port}\r\nSec-Fetch-Site: same-origin\r\n");
        let request = format!("GET {data} HTTP/1.1\r\nHost: {host}:{port}\r\n{token}{origin}\r\n");
        assert_eq!(status(&viewing.ask(&request)), "200", "{host}");
    }
}

#[test]
fn server_goes_on_while_others_send_half_a_request() {
    let (_directory, path) = copied();
    let viewing = Viewing::start(&[text(&path)]);
    let mut half = Vec::new();
    for _ in 0..64 {
        let mut connection = TcpStream::connect(viewing.host()).expect("connected");
        connection.write_all(b"GET / HT").expect("written");
        half.push(connection);
    }
    // Half requests are given up after a time, with an answer that says so.
    let mut answer = String::new();
    let _ = half[0].read_to_string(&mut answer);
    assert_eq!(status(&answer), "408", "{answer}");
    let end = Instant::now() + Duration::from_secs(60);
    while status(&viewing.get("/", "")) != "200" {
        assert!(Instant::now() < end);
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn socket_is_open_to_this_user_alone() {
    let (directory, path) = copied();
    let socket = directory.path().join("view.socket");
    // One that was left behind is replaced; another file is not.
    drop(std::os::unix::net::UnixListener::bind(&socket).expect("a socket"));
    let viewing = Viewing::start(&[text(&path), "--socket", text(&socket)]);
    let mode = fs::metadata(&socket)
        .expect("a socket")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let token = viewing.token();
    let ask = |lines: &str| {
        let mut connection = UnixStream::connect(&socket).expect("connected");
        let head = format!("GET /data/0/0/0/0 HTTP/1.1\r\nHost: localhost:8000\r\n{lines}\r\n");
        exchange(&mut connection, &head)
    };
    assert_eq!(status(&ask("")), "403");
    assert_eq!(status(&ask(&format!("X-Rpd-Token: {token}\r\n"))), "200");
    let other = directory.path().join("file");
    File::create(&other).expect("a file");
    let outcome = view([text(&path), "--no-browser", "--socket", text(&other)]).expect_code(1);
    assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("--socket"), "{}", outcome.stderr);
}

#[test]
fn server_ends_by_itself_and_at_an_interrupt() {
    let (_directory, path) = copied();
    let outcome = view([text(&path), "--no-browser", "--idle", "0.001"]).success();
    assert!(
        outcome.stdout.starts_with("http://127.0.0.1:"),
        "{}",
        outcome.stdout
    );
    let mut viewing = Viewing::start(&[text(&path)]);
    let pid = viewing.child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status();
    assert!(sent.expect("kill runs").success());
    assert_eq!(viewing.child.wait().expect("ended").code(), Some(0));
}

// answers-92
#[test]
fn tiles_are_kept_and_made_again_when_they_are_stale() {
    let (directory, path) = copied();
    let tiles = directory.path().join("x_results.db.rpdview");
    let is_made = || {
        let outcome = view([text(&path), "--build-only"]).success();
        assert_eq!(outcome.stdout, "");
        outcome.stderr.contains("MB of tiles in")
    };
    assert!(is_made());
    let mode = fs::metadata(&tiles).expect("tiles").permissions().mode();
    assert_eq!(mode & 0o077, 0);
    assert!(!is_made());
    // Another time, another size, a damaged file, tiles of something else.
    let file = File::options()
        .append(true)
        .open(&path)
        .expect("a database");
    let before = file
        .metadata()
        .and_then(|found| found.modified())
        .expect("a time");
    file.set_modified(before + Duration::from_secs(1))
        .expect("set");
    assert!(is_made());
    Database::change(
        &path,
        "CREATE TABLE more (x); INSERT INTO more VALUES (randomblob(100000));",
    );
    file.set_modified(before + Duration::from_secs(1))
        .expect("set");
    assert!(is_made());
    let whole = fs::read(&tiles).expect("tiles");
    for damaged in [&whole[..whole.len() - 1], &whole[..10], b"RPDVIEW0", b""] {
        fs::write(&tiles, damaged).expect("written");
        assert!(is_made());
        assert_eq!(fs::read(&tiles).expect("tiles").len(), whole.len());
    }
    let mut changed = whole.clone();
    changed[0] ^= 1;
    fs::write(&tiles, changed).expect("written");
    assert!(is_made());
    assert!(!is_made());
    // Nothing else is left.
    let left: Vec<_> = fs::read_dir(directory.path())
        .expect("read")
        .flatten()
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn tiles_are_in_the_cache_directory_where_the_database_cannot_be_joined() {
    let (directory, path) = copied();
    let cache = tempfile::tempdir().expect("a directory");
    let set = |mode| fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode));
    set(0o500).expect("set");
    if File::create(directory.path().join("probe")).is_ok() {
        set(0o700).expect("set");
        skipped(
            "rpd view beside a database that cannot be joined",
            "root can write everywhere",
        );
        return;
    }
    let outcome = Rpd::plain(["view", text(&path), "--build-only"])
        .env("XDG_CACHE_HOME", text(cache.path()))
        .run()
        .success();
    set(0o700).expect("set");
    assert!(
        outcome.stderr.contains(text(cache.path())),
        "{}",
        outcome.stderr
    );
}

#[test]
fn view_refuses_what_it_cannot_show_in_one_line() {
    let (directory, path) = copied();
    let empty = directory.path().join("empty");
    fs::create_dir(&empty).expect("made");
    let cases: [(&[&str], i32, &str); 6] = [
        (&[], 2, "at least one database"),
        (&["/nowhere.db", "--build-only"], 1, "/nowhere.db"),
        (&[text(&empty), "--build-only"], 1, "holds no .db file"),
        (&[text(&path), "--window", "5"], 2, "FROM..TO"),
        (
            &[text(&path), "--window", "99%..1%", "--build-only"],
            1,
            "before it begins",
        ),
        (&[text(&path), "--idle", "0"], 2, "minutes"),
    ];
    for (words, code, said) in cases {
        let outcome = view(words.iter().copied()).expect_code(code);
        assert_eq!(
            outcome.stderr.lines().count(),
            1,
            "{words:?}: {}",
            outcome.stderr
        );
        assert!(
            outcome.stderr.contains(said),
            "{words:?}: {}",
            outcome.stderr
        );
    }
}

/// Name, count, sum, least and greatest of each row of a report over a window.
fn reported(path: &Path, report: &str, window: (u64, u64)) -> Vec<(String, [u64; 4])> {
    let (start, end) = (window.0.to_string(), window.1.to_string());
    let words = [
        "stats",
        text(path),
        "-r",
        report,
        "-f",
        "json",
        "--limit",
        "0",
    ];
    let words = words.into_iter().chain(["--start", &start, "--end", &end]);
    // Without rows the status says so.
    let outcome = command(&install::rpd(), words);
    assert!([0, 7].contains(&outcome.code()), "{}", outcome.stderr);
    let answer: Value = serde_json::from_str(&outcome.stdout).expect("an object");
    let number = |row: &Value, name: &str| {
        row[name]
            .as_u64()
            .unwrap_or_else(|| panic!("{name}: {row}"))
    };
    let rows = answer["rows"].as_array().expect("rows").iter().map(|row| {
        let (name, count) = if report == "kern_sum" {
            ("name", "instances")
        } else {
            ("operation", "count")
        };
        let columns = [count, "total_ns", "min_ns", "max_ns"];
        let name = row[name].as_str().expect("a name").to_owned();
        (name, columns.map(|column| number(row, column)))
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort();
    rows
}

/// Name, count, sum, least and greatest of each row of one kind that the page shows for a selection.
fn shown(browser: &mut Browser, kind: &str) -> Vec<(String, [u64; 4])> {
    let sums = browser.until(&format!(
        "rpdView.sums && JSON.stringify(rpdView.sums.names.filter(row => row.kind === '{kind}').map(row => \
         [row.text, row.sum.count, row.sum.sum, row.sum.min, row.sum.max]))"
    ));
    let rows: Vec<(String, u64, u64, u64, u64)> =
        serde_json::from_str(sums.as_str().expect("text")).expect("rows");
    let mut rows: Vec<_> = rows
        .into_iter()
        .map(|row| (row.0, [row.1, row.2, row.3, row.4]))
        .collect();
    rows.sort();
    rows
}

fn compare_sums(browser: &mut Browser, path: &Path) {
    let origin: u64 = browser
        .value("rpdView.meta.origin")
        .as_str()
        .and_then(|text| text.parse().ok())
        .expect("a number");
    let length = browser
        .value("rpdView.meta.length")
        .as_u64()
        .expect("a number");
    for (from, to) in [(0.0, 1.0), (0.2, 0.8), (0.5, 0.503), (0.9, 0.97)] {
        let at = |share: f64| (length as f64 * share) as u64;
        let (from, to) = (at(from), at(to));
        browser.value(&format!("rpdView.select({from}, {to})"));
        for (kind, report) in [("kernels", "kern_sum"), ("copies", "copy_time_sum")] {
            let window = (origin + from, origin + to);
            assert_eq!(
                shown(browser, kind),
                reported(path, report, window),
                "{kind} of {window:?}"
            );
        }
    }
}

// answers-88
#[test]
fn selection_adds_up_to_what_stats_reports() {
    let Some(mut browser) = Browser::start("sums of a selection") else {
        return;
    };
    let (directory, path) = copied();
    let viewing = Viewing::start(&[text(&path)]);
    browser.open(&viewing.address);
    compare_sums(&mut browser, &path);
    // By the pointer: the stretch from where it goes down to where it goes up, over empty room of a track too.
    browser.value("rpdView.select(0, 1)");
    browser.drag((500.0, 300.0), (800.0, 320.0));
    let range = browser.until(
        "rpdView.state.range && rpdView.state.range.to > 10 && JSON.stringify(rpdView.state.range)",
    );
    let at = |browser: &mut Browser, x: f64| {
        browser
            .value(&format!("Math.round(rpdView.timeAt({x}))"))
            .as_f64()
            .expect("a number")
    };
    let range: Value = serde_json::from_str(range.as_str().expect("text")).expect("an object");
    for (name, x) in [("from", 500.0), ("to", 800.0)] {
        let expected = at(&mut browser, x);
        let found = range[name].as_f64().expect("a number");
        assert!(
            (found - expected).abs() <= 1.0,
            "{name}: {range}, {expected}"
        );
    }
    // The same page as one file, without a server.
    let file = directory.path().join("x.html");
    let _ = view([text(&path), "--export", text(&file)]).success();
    browser.open_file(&file);
    compare_sums(&mut browser, &path);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn sums_of_whole_tiles_are_those_of_their_records() {
    let Some(mut browser) = Browser::start("sums of tiles") else {
        return;
    };
    let (_directory, path) = copied();
    let viewing = Viewing::start(&[text(&path)]);
    browser.open(&viewing.address);
    let different = browser.value(
        "(async () => { const different = []; for (const track of rpdView.meta.tracks) \
         for (const [from, to] of [[0, 1], [0.1, 1], [0, 0.9], [0.3, 0.6]]) { \
         const window = [Math.round(from * rpdView.meta.length), Math.round(to * rpdView.meta.length)]; \
         const sums = await Promise.all([0, Infinity].map(most => rpdView.sumTrack(track, ...window, most))); \
         const [tiles, records] = sums.map(({all, byName}) => JSON.stringify([all.count, all.sum, all.union, all.min, all.max, all.bytes, \
         [...byName].map(([name, sum]) => [name, sum.count, sum.sum, sum.min, sum.max, sum.bytes]).sort()])); \
         if (tiles !== records) different.push([track.label, window, tiles, records]); } return JSON.stringify(different); })()",
    );
    assert_eq!(different, "[]");
}

/// Keeps texts that the page draws, before it does.
const NOTE_TEXTS: &str = "window.drawn = []; const draw = CanvasRenderingContext2D.prototype.fillText; \
     CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) { window.drawn.push(text); draw.call(this, text, ...rest); };";

// answers-89
#[test]
fn names_are_readable_at_twenty_microseconds() {
    let Some(mut browser) = Browser::start("names at 20 us") else {
        return;
    };
    let (_directory, path) = copied();
    let viewing = Viewing::start(&[text(&path)]);
    let note = serde_json::json!({"source": NOTE_TEXTS});
    browser.call("Page.addScriptToEvaluateOnNewDocument", note);
    browser.open(&viewing.address);
    browser.value(
        "(async () => { const track = rpdView.rows.find(row => row.track?.kind === 'kernels').track; \
         const record = await rpdView.recordNear(track, rpdView.meta.length / 2); \
         rpdView.zoomTo(record.start - 8000, record.start + 9000); })()",
    );
    browser.until("rpdView.state.to - rpdView.state.from < 20001 && rpdView.isReady && window.drawn.some(text => text.includes('_kernel'))");
    // Times differ from one another at this zoom, seconds after the begin.
    let ticks = browser
        .value("window.drawn.filter(text => /^[\\d.,]+\\u202f(µs|ms|s)$/.test(text)).slice(-4)");
    let ticks: Vec<&str> = ticks
        .as_array()
        .expect("texts")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let mut apart = ticks.clone();
    apart.dedup();
    assert!(ticks.len() > 2 && apart.len() == ticks.len(), "{ticks:?}");
}

#[test]
fn panel_leads_to_the_launching_call_and_its_place_in_the_source() {
    let Some(mut browser) = Browser::start("links of the timeline") else {
        return;
    };
    let (_directory, path) = copied();
    let viewing = Viewing::start(&[text(&path)]);
    browser.open(&viewing.address);
    browser.value(
        "(async () => { const track = rpdView.rows.find(row => row.track?.kind === 'kernels').track; \
         await rpdView.pick(await rpdView.recordNear(track, rpdView.meta.length / 2)); })()",
    );
    let panel = "document.getElementById('chosen').textContent";
    for shown in [
        "65536",
        "Registers",
        "hipLaunchKernel",
        "worker ",
        "kernel|",
    ] {
        browser.until(&format!("{panel}.includes('{shown}')"));
    }
    let click = |name: &str| {
        format!(
            "[...document.querySelectorAll('#chosen button')].find(node => node.textContent === '{name}').click()"
        )
    };
    browser.value(&click("Place in the source"));
    browser.until(&format!("{panel}.includes('vector-ops.c:')"));
    browser.value(&click("Launch call"));
    browser.until("rpdView.state.record.track.kind === 'calls'");
    browser.until(&format!("{panel}.startsWith('hipLaunchKernel')"));
    browser.value(&click("What it launched"));
    browser.until("rpdView.state.record.track.kind === 'kernels'");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

// answers-90
#[test]
fn names_with_markup_are_text() {
    let Some(mut browser) = Browser::start("names with markup") else {
        return;
    };
    let (directory, path) = copied();
    let hostile = "<img src=x onerror=window.broken=1></script><script>window.broken=1</script>\u{202e}&amp;'\"";
    let quoted = hostile.replace('\'', "''");
    let tables = Database::open(&path)
        .rows("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'rocpd_string%'");
    let kernels = Database::open(&path).rows("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'rocpd_info_kernel_symbol%'");
    let (strings, kernels) = (&tables[0][0], &kernels[0][0]);
    Database::change(
        &path,
        &format!(
            "UPDATE \"{strings}\" SET string = '{quoted}' || id WHERE string LIKE 'worker%' OR string LIKE '%iteration%'; \
             UPDATE \"{kernels}\" SET display_name = '{quoted}', kernel_name = '{quoted}';"
        ),
    );
    let file = directory.path().join("x.html");
    let _ = view([text(&path), "--export", text(&file)]).success();
    let viewing = Viewing::start(&[text(&path)]);
    for address in [
        viewing.address.clone(),
        format!("file://{}", file.display()),
    ] {
        browser.open(&address);
        browser.value(
            "(async () => { const track = rpdView.rows.find(row => row.track?.kind === 'kernels').track; \
             await rpdView.pick(await rpdView.recordNear(track, rpdView.meta.length / 2)); \
             rpdView.select(0, rpdView.meta.length); })()",
        );
        browser.until("rpdView.sums");
        let title = browser.until("document.querySelector('#chosen h2')?.textContent");
        assert_eq!(title, hostile);
        assert!(
            browser
                .value("document.getElementById('sums').textContent")
                .as_str()
                .expect("text")
                .contains("<img src=x")
        );
        assert_eq!(browser.value("String(window.broken)"), "undefined");
        assert_eq!(browser.value("document.images.length"), 0);
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
    // The policy holds: a script of another kind is refused.
    browser.open(&viewing.address);
    browser.value("document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.broken = 1'}))");
    assert_eq!(browser.value("String(window.broken)"), "undefined");
    assert!(
        browser
            .complaints()
            .iter()
            .any(|line| line.contains("Content Security Policy"))
    );
}

// answers-91
#[test]
fn every_key_does_what_the_list_of_keys_says() {
    let Some(mut browser) = Browser::start("keys of the timeline") else {
        return;
    };
    let (_directory, path) = copied();
    let viewing = Viewing::start(&[text(&path)]);
    browser.open(&viewing.address);
    let number =
        |browser: &mut Browser, what: &str| browser.value(what).as_f64().expect("a number");
    let from = "rpdView.state.from";
    let span = "rpdView.state.to - rpdView.state.from";
    for (key, what, grows) in [
        ("w", span, false),
        ("s", span, true),
        ("+", span, false),
        ("-", span, true),
        ("W", span, false),
        ("d", from, true),
        ("a", from, false),
        ("ArrowRight", from, true),
        ("ArrowLeft", from, false),
        ("D", from, true),
        ("A", from, false),
        ("S", span, true),
    ] {
        let before = number(&mut browser, what);
        browser.key(key);
        let after = number(&mut browser, what);
        assert_eq!(after > before, grows, "{key}: {before} {after}");
        assert_ne!(after, before, "{key}");
    }
    browser.key("0");
    let whole = number(&mut browser, span);
    // Search, by key alone.
    browser.key("/");
    for letter in "multiply".chars() {
        browser.key(&letter.to_string());
    }
    browser.until("rpdView.state.query?.count === 40");
    browser.key("Enter");
    let first = browser.until("rpdView.state.record?.start");
    browser.key("Escape");
    browser.key("n");
    let second = browser.until(&format!(
        "rpdView.state.record?.start !== {first} && rpdView.state.record.start"
    ));
    assert!(second.as_f64() > first.as_f64());
    browser.key("N");
    browser.until(&format!("rpdView.state.record?.start === {first}"));
    // Along the flow: its call, and back; on to the call that waits.
    browser.until("rpdView.state.flow.length > 0");
    browser.key("[");
    browser.until("rpdView.state.record?.track.kind === 'calls'");
    browser.key("]");
    browser.until(&format!(
        "rpdView.state.record?.track.kind === 'kernels' && rpdView.state.record.start === {first}"
    ));
    browser.key("]");
    browser.until("rpdView.state.record?.track.kind === 'calls'");
    browser.key("[");
    browser.key("f");
    browser.until(&format!("{span} < {whole} / 2"));
    browser.key("f");
    browser.until(&format!("Math.abs({span} - {whole}) < 2"));
    browser.key("m");
    browser.until("rpdView.state.mark && !document.getElementById('marks').hidden");
    browser.key("M");
    browser.until("rpdView.state.marks.length === 1 && !rpdView.state.mark");
    // Tracks and their records.
    let id = "rpdView.state.track.id";
    let track = browser.value(id);
    browser.key("ArrowUp");
    browser.until(&format!("{id} !== {track}"));
    browser.key("ArrowDown");
    browser.until(&format!("{id} === {track}"));
    browser.until("rpdView.state.record?.track === rpdView.state.track");
    let place = "rpdView.state.record.number * 4096 + rpdView.state.record.row";
    let before = number(&mut browser, place);
    browser.key(".");
    browser.until(&format!("{place} === {before} + 1"));
    browser.key(",");
    browser.until(&format!("{place} === {before}"));
    browser.key("p");
    browser.until(&format!(
        "rpdView.state.pinned.has({id}) && rpdView.rows[0].owner === 'Pinned'"
    ));
    browser.key("c");
    browser.until(&format!("rpdView.state.collapsed.has({id})"));
    let theme = "document.documentElement.dataset.theme ?? ''";
    for expected in ["dark", "light", ""] {
        browser.key("t");
        assert_eq!(browser.value(theme), expected);
    }
    browser.key("f");
    browser.until(&format!("{span} < {whole} / 2"));
    let middle = browser
        .value("Math.round(rpdView.meta.length / 2)")
        .to_string();
    browser.key("g");
    assert_eq!(browser.value("document.activeElement.id"), "go");
    // Letters in a field are letters.
    for letter in middle.chars().chain("ns".chars()) {
        browser.key(&letter.to_string());
    }
    browser.key("Enter");
    browser.until(&format!(
        "Math.abs((rpdView.state.from + rpdView.state.to) / 2 - {middle}) < 2 && document.activeElement.id === 'canvas'"
    ));
    browser.key_with("f", 2);
    assert_eq!(browser.value("document.activeElement.id"), "query");
    browser.key("Escape");
    browser.key("?");
    assert_eq!(browser.value("document.getElementById('keys').open"), true);
    browser.key("Escape");
    browser.until("!document.getElementById('keys').open");
    // The place is in the address.
    let kept = "JSON.stringify([Math.round(rpdView.state.from), Math.round(rpdView.state.to), rpdView.state.record?.start, \
                rpdView.state.marks, [...rpdView.state.pinned], [...rpdView.state.collapsed], rpdView.state.query?.text])";
    let place = browser.value(kept);
    browser.until("location.hash.includes('marks=') && location.hash.includes('record=') && location.hash.includes('q=multiply')");
    std::thread::sleep(Duration::from_millis(300));
    browser.call("Page.reload", serde_json::json!({}));
    let expected = serde_json::to_string(&place).expect("text");
    browser.until(&format!("window.rpdView?.isReady && {kept} === {expected}"));
    browser.key("Escape");
    browser.until("!rpdView.state.record && !rpdView.state.query");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn page_has_names_for_controls_and_colours_that_contrast() {
    let Some(mut browser) = Browser::start("accessibility of the timeline") else {
        return;
    };
    let (_directory, path) = copied();
    let viewing = Viewing::start(&[text(&path)]);
    browser.open(&viewing.address);
    browser.value("rpdView.select(0, rpdView.meta.length)");
    browser.until("rpdView.sums");
    let tree = browser.call("Accessibility.getFullAXTree", serde_json::json!({}));
    let mut controls = 0;
    for node in tree["nodes"].as_array().expect("nodes") {
        let role = node["role"]["value"].as_str().unwrap_or("");
        if [
            "button",
            "textbox",
            "searchbox",
            "checkbox",
            "combobox",
            "application",
            "complementary",
        ]
        .contains(&role)
        {
            controls += 1;
            let name = node["name"]["value"].as_str().unwrap_or("");
            assert!(!name.is_empty(), "{node}");
        }
    }
    assert!(controls > 15, "{controls}");
    // What is chosen is said.
    browser.key("ArrowDown");
    browser.until("document.getElementById('status').textContent.includes('records')");
    let least =
        browser.value("Math.min(...rpdView.INKS.map(ink => rpdView.contrast(ink.box, ink.text)))");
    assert!(least.as_f64().expect("a number") >= 4.5, "{least}");
    for theme in ["dark", "light"] {
        browser.value(&format!(
            "document.documentElement.dataset.theme = '{theme}'"
        ));
        let pairs = "(() => { const style = getComputedStyle(document.documentElement), of = (name) => style.getPropertyValue(name).trim(); \
            const long = (colour) => colour.length === 4 ? '#' + [...colour.slice(1)].map(letter => letter + letter).join('') : colour; \
            return [['--text', '--card'], ['--faint', '--card'], ['--text', '--lane'], ['--faint', '--lane'], ['--warn', '--warn-back'], \
            ['--accent', '--card'], ['--text', '--head']].map(([a, b]) => rpdView.contrast(long(of(a)), long(of(b)))); })()";
        for value in browser.value(pairs).as_array().expect("numbers") {
            assert!(value.as_f64().expect("a number") >= 4.5, "{theme}: {value}");
        }
    }
}

#[test]
fn window_cuts_records_out() {
    let (directory, path) = copied();
    let whole = directory.path().join("whole.html");
    let part = directory.path().join("part.html");
    let _ = view([text(&path), "--export", text(&whole)]).success();
    let outcome = view([text(&path), "--window", "40%..60%", "--export", text(&part)]).success();
    let sizes = [&whole, &part].map(|path| fs::metadata(path).expect("a page").len());
    assert!(sizes[1] < sizes[0], "{sizes:?}: {}", outcome.stderr);
    // The same input, the same bytes.
    let again = directory.path().join("again.html");
    let _ = view([text(&path), "--export", text(&again)]).success();
    assert!(fs::read(&whole).expect("read") == fs::read(&again).expect("read"));
}
