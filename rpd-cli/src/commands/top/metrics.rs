//! The figures for Prometheus: text exposition 0.0.4 over HTTP.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rpd_view::http;

use super::model::{Row, Snapshot};
use crate::failure::Failure;

/// Connections that are served at the same time; more are closed.
const MOST_CONNECTIONS: usize = 16;
/// Time for a request to arrive, and for an answer to be taken.
const LIMIT: Duration = Duration::from_secs(5);
/// Names of each sort that are listed, by time; the others are added up.
const MOST_NAMES: usize = 500;

/// The page that is served; shared with the thread that reads recordings.
#[derive(Debug, Clone, Default)]
pub(super) struct Page(Arc<Mutex<Arc<str>>>);

impl Page {
    /// Replaces the page.
    pub(super) fn set(&self, snapshot: &Snapshot) {
        let text = page(snapshot).into();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    fn text(&self) -> Arc<str> {
        let page = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&page)
    }
}

/// The address of `--metrics`: a port, or a host and a port. The loopback interface without a host.
///
/// # Errors
/// The text is neither a port nor an address, or the host has no address.
pub(super) fn address(text: &str) -> Result<SocketAddr, Failure> {
    let loopback = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let number = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = number.parse::<u16>() {
        return Ok(loopback(port));
    }
    let found = text.to_socket_addrs().map(|mut found| found.next());
    match found {
        Ok(Some(address)) => Ok(address),
        Ok(None) | Err(_) => Err(Failure::usage(format!(
            "top: --metrics {text}: expected a port such as 9464, or an address with a port such as 0.0.0.0:9464"
        ))),
    }
}

/// Serves the page in threads of its own until the process ends. Returns the address, whose port the system chooses for 0.
///
/// # Errors
/// The address is taken, or not one of this machine.
pub(super) fn serve(address: SocketAddr, page: Page) -> Result<SocketAddr> {
    let listener =
        TcpListener::bind(address).with_context(|| format!("top: --metrics {address}"))?;
    let bound = listener.local_addr()?;
    let open = Arc::new(AtomicUsize::new(0));
    std::thread::Builder::new()
        .spawn(move || {
            for connection in listener.incoming() {
                // Without a free descriptor: others may be closed soon.
                let Ok(connection) = connection else {
                    std::thread::sleep(Duration::from_millis(50));
                    continue;
                };
                if open.fetch_add(1, Ordering::AcqRel) >= MOST_CONNECTIONS {
                    open.fetch_sub(1, Ordering::AcqRel);
                    continue;
                }
                let (page, counted) = (page.clone(), Arc::clone(&open));
                let serve = move || {
                    // Whoever asks sees an error by the end of the connection.
                    let _ = answer(connection, &page);
                    counted.fetch_sub(1, Ordering::AcqRel);
                };
                if std::thread::Builder::new().spawn(serve).is_err() {
                    open.fetch_sub(1, Ordering::AcqRel);
                }
            }
        })
        .context("top: --metrics: no thread can be started")?;
    Ok(bound)
}

/// Answers one request, within the time for it.
fn answer(mut connection: TcpStream, page: &Page) -> std::io::Result<()> {
    let end = Instant::now() + LIMIT;
    let Some(request) = http::read(&mut connection, end)? else {
        return Ok(());
    };
    let (status, text) = match &request {
        Ok(request) => match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/metrics" | "/") => ("200 OK", page.text()),
            ("GET", _) => ("404 Not Found", "".into()),
            _ => ("405 Method Not Allowed", "".into()),
        },
        Err(status) => (*status, "".into()),
    };
    let kind = "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n";
    http::respond(&mut connection, status, kind, text.as_bytes(), end)
}

/// A label's value.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// The rows that are listed: of many the first, and one that adds the others up.
fn listed(rows: &[Row]) -> Vec<Row> {
    let (shown, others) = rows.split_at(rows.len().min(MOST_NAMES));
    let mut listed = shown.to_vec();
    if !others.is_empty() {
        let mut sum = Row {
            name: "(others)".to_owned(),
            ..Row::default()
        };
        for row in others {
            sum.count += row.count;
            sum.total_ns = sum.total_ns.saturating_add(row.total_ns);
            sum.bytes = sum.bytes.saturating_add(row.bytes);
        }
        listed.push(sum);
    }
    listed
}

/// The page for a snapshot.
fn page(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    let mut metric = |name: &str, kind: &str, help: &str, values: Vec<(String, String)>| {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(text, "{name}{labels} {value}");
        }
    };
    let seconds = |nanoseconds: u64| format!("{}", nanoseconds as f64 / 1e9);
    let with = |label: &'static str, rows: &[Row], value: &dyn Fn(&Row) -> String| {
        let values = rows.iter().map(|row| {
            let labels = format!("{{{label}=\"{}\"}}", escaped(&row.name));
            (labels, value(row))
        });
        values.collect::<Vec<_>>()
    };
    let processes = vec![(String::new(), snapshot.processes.len().to_string())];
    metric(
        "rpd_processes",
        "gauge",
        "Processes that run and are recorded.",
        processes,
    );
    for (sort, label, what, rows) in [
        (
            "kernel",
            "kernel",
            "Kernel dispatches that are complete",
            &snapshot.kernels,
        ),
        (
            "call",
            "function",
            "Calls that have returned",
            &snapshot.calls,
        ),
        (
            "copy",
            "direction",
            "Memory copies that are complete",
            &snapshot.copies,
        ),
    ] {
        let rows = listed(rows);
        let counts = with(label, &rows, &|row| row.count.to_string());
        metric(
            &format!("rpd_{sort}_count_total"),
            "counter",
            &format!("{what}."),
            counts,
        );
        let times = with(label, &rows, &|row| seconds(row.total_ns));
        let help = format!("{what}: their durations added up, in seconds.");
        metric(
            &format!("rpd_{sort}_seconds_total"),
            "counter",
            &help,
            times,
        );
        if sort == "copy" {
            let bytes = with(label, &rows, &|row| row.bytes.to_string());
            metric(
                "rpd_copy_bytes_total",
                "counter",
                "Bytes that were copied.",
                bytes,
            );
        }
    }
    let of_gpus = |value: &dyn Fn(&super::model::Gpu) -> String| {
        let values = snapshot.gpus.iter().map(|gpu| {
            let labels = format!("{{gpu=\"{}\"}}", escaped(&gpu.name));
            (labels, value(gpu))
        });
        values.collect::<Vec<_>>()
    };
    let busy = of_gpus(&|gpu| gpu.busy.to_string());
    let help = "Part of the last interval in which a kernel or a copy ran.";
    metric("rpd_gpu_busy_ratio", "gauge", help, busy);
    let memory = of_gpus(&|gpu| gpu.memory_bytes.to_string());
    metric(
        "rpd_gpu_memory_bytes",
        "gauge",
        "Memory that is allocated.",
        memory,
    );
    text
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    fn snapshot(kernels: usize) -> Snapshot {
        let row = |number| Row {
            name: format!("k{number}<\"a\\b\">"),
            count: 2,
            total_ns: 1_500_000_000,
            ..Row::default()
        };
        Snapshot {
            processes: vec![7],
            kernels: (0..kernels).map(row).collect(),
            ..Snapshot::default()
        }
    }

    #[test]
    fn page_escapes_labels_and_bounds_their_number() {
        let text = page(&snapshot(2));
        assert!(
            text.contains("# TYPE rpd_kernel_count_total counter\n"),
            "{text}"
        );
        let line = "rpd_kernel_seconds_total{kernel=\"k1<\\\"a\\\\b\\\">\"} 1.5\n";
        assert!(text.contains(line), "{text}");
        let text = page(&snapshot(MOST_NAMES + 3));
        assert!(
            text.contains("rpd_kernel_count_total{kernel=\"(others)\"} 6\n"),
            "{text}"
        );
    }

    #[test]
    fn address_is_on_the_loopback_interface_unless_one_is_given() {
        assert_eq!(
            address("9464").expect("a port").to_string(),
            "127.0.0.1:9464"
        );
        assert_eq!(address(":0").expect("a port").to_string(), "127.0.0.1:0");
        assert_eq!(address("0.0.0.0:1").expect("both").to_string(), "0.0.0.0:1");
        for text in ["", "x", "70000", "1.2.3.4", "300.0.0.1:5"] {
            assert!(address(text).is_err(), "{text}");
        }
    }

    fn get(address: SocketAddr, request: &str) -> String {
        let mut connection = TcpStream::connect(address).expect("connected");
        connection.write_all(request.as_bytes()).expect("written");
        let mut text = String::new();
        // A connection beyond the bound is closed, perhaps by a reset.
        let _ = connection.read_to_string(&mut text);
        text
    }

    #[test]
    fn server_answers_while_others_send_half_a_message_or_never_read() {
        let page = Page::default();
        page.set(&snapshot(1));
        let address = serve(address("0").expect("a port"), page).expect("served");
        let request = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
        assert!(get(address, request).contains("rpd_processes 1\n"));
        assert!(get(address, "GET /x HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(get(address, "POST / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
        let half: Vec<TcpStream> = (0..MOST_CONNECTIONS)
            .map(|_| {
                let mut half = TcpStream::connect(address).expect("connected");
                half.write_all(b"GET /met").expect("written");
                half
            })
            .collect();
        let crowd: Vec<TcpStream> = (0..1000)
            .filter_map(|_| TcpStream::connect(address).ok())
            .collect();
        drop(crowd);
        // Half messages are given up after a time, and their places are free again.
        let end = Instant::now() + 20 * LIMIT;
        while !get(address, request).contains("rpd_processes 1\n") {
            assert!(Instant::now() < end);
            std::thread::sleep(Duration::from_millis(100));
        }
        drop(half);
    }
}
