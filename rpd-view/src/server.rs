//! The local server of the page. Any page in the user's browser and any user of the machine can reach it, and recordings hold paths,
//! arguments and names: who asks for data must know the token, and what asks must be our own page.

use std::fs::{File, Permissions};
use std::io::{self, Read as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::http::{self, Connection, Request};
use crate::page;
use crate::pyramid::{Key, MOST_BYTES, Part, Pyramid};

/// Connections that are served at the same time; more are closed.
const MOST_CONNECTIONS: usize = 64;
/// Time for a request to arrive, and for an answer to be taken.
const LIMIT: Duration = Duration::from_secs(5);
/// Time between looks at whether to end.
const STEP: Duration = Duration::from_millis(50);

/// Lines of every answer's head: nothing is loaded from elsewhere, framed, guessed, passed on or kept.
const SAFETY: &str = "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'\r\n\
X-Content-Type-Options: nosniff\r\n\
Referrer-Policy: no-referrer\r\n\
Cross-Origin-Resource-Policy: same-origin\r\n\
Cross-Origin-Opener-Policy: same-origin\r\n\
Cache-Control: no-store\r\n";

/// Tells from which place of the program's source a call was made, by the index of its process and its number.
pub type Site = Box<dyn Fn(u32, u64) -> Option<String> + Send>;

/// What is served.
struct Served {
    pyramid: Pyramid,
    site: Mutex<Site>,
    token: String,
    /// Port that requests name; `None` for a socket, which others may lead a port to.
    port: Option<u16>,
    start: Instant,
    /// Milliseconds from the start to the last request.
    last: AtomicU64,
}

enum Listener {
    Port(TcpListener),
    Socket(UnixListener, PathBuf),
}

/// A server that listens.
pub struct Server {
    listener: Listener,
    served: Arc<Served>,
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Listener::Socket(_, path) = &self.listener {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// 128 bits of the kernel's random source, as text.
fn token() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl Server {
    fn new(listener: Listener, pyramid: Pyramid, site: Site) -> io::Result<Server> {
        let port = match &listener {
            Listener::Port(listener) => Some(listener.local_addr()?.port()),
            Listener::Socket(..) => None,
        };
        Ok(Server {
            listener,
            served: Arc::new(Served {
                pyramid,
                site: Mutex::new(site),
                token: token()?,
                port,
                start: Instant::now(),
                last: AtomicU64::new(0),
            }),
        })
    }

    /// Listens on a port of the loopback interface; 0 lets the system choose.
    ///
    /// # Errors
    /// The port is taken.
    pub fn on_port(port: u16, pyramid: Pyramid, site: Site) -> io::Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        Server::new(Listener::Port(listener), pyramid, site)
    }

    /// Listens on a socket that this user alone can open.
    ///
    /// # Errors
    /// There is something of this name that is no socket which nobody listens on, or it cannot be made.
    pub fn on_socket(path: &Path, pyramid: Pyramid, site: Site) -> io::Result<Server> {
        let is_left = std::fs::symlink_metadata(path)
            .is_ok_and(|found| found.file_type().is_socket())
            && std::os::unix::net::UnixStream::connect(path).is_err();
        if is_left {
            std::fs::remove_file(path)?;
        }
        // Made in a directory that nobody else can enter, so that the socket is never open to others, and moved from there.
        let parent = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let place = tempfile::Builder::new()
            .prefix(".rpdview-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(parent.unwrap_or(Path::new(".")))?;
        let made = place.path().join("socket");
        let listener = UnixListener::bind(&made)?;
        std::fs::set_permissions(&made, Permissions::from_mode(0o600))?;
        // A link does not replace what has the name.
        std::fs::hard_link(&made, path)?;
        Server::new(Listener::Socket(listener, path.to_owned()), pyramid, site)
    }

    /// Address of the page, with the token behind `#`, which browsers send to nobody; of a socket the part behind the host.
    pub fn address(&self) -> String {
        let token = &self.served.token;
        match self.served.port {
            Some(port) => format!("http://127.0.0.1:{port}/#k={token}"),
            None => format!("/#k={token}"),
        }
    }

    /// The port; `None` for a socket.
    pub fn port(&self) -> Option<u16> {
        self.served.port
    }

    /// Serves until `is_ended`, or so long after the last request.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn run(&self, idle: Duration, is_ended: &AtomicBool) -> io::Result<()> {
        let open = Arc::new(AtomicUsize::new(0));
        match &self.listener {
            Listener::Port(listener) => {
                let listener = listener.try_clone()?;
                let served = Arc::clone(&self.served);
                let accept = move || accept(&served, &open, || Ok(listener.accept()?.0));
                std::thread::Builder::new().spawn(accept)?;
            }
            Listener::Socket(listener, _) => {
                let listener = listener.try_clone()?;
                let served = Arc::clone(&self.served);
                let accept = move || accept(&served, &open, || Ok(listener.accept()?.0));
                std::thread::Builder::new().spawn(accept)?;
            }
        }
        while !is_ended.load(Ordering::Relaxed) {
            let last = Duration::from_millis(self.served.last.load(Ordering::Relaxed));
            if self.served.start.elapsed().saturating_sub(last) >= idle {
                break;
            }
            std::thread::sleep(STEP);
        }
        Ok(())
    }
}

/// Serves each connection in a thread of its own, until the process ends.
fn accept<C: Connection + Send + 'static>(
    served: &Arc<Served>,
    open: &Arc<AtomicUsize>,
    next: impl Fn() -> io::Result<C>,
) {
    loop {
        let Ok(mut connection) = next() else {
            // Without a free descriptor: others may be closed soon.
            std::thread::sleep(STEP);
            continue;
        };
        if open.fetch_add(1, Ordering::AcqRel) >= MOST_CONNECTIONS {
            open.fetch_sub(1, Ordering::AcqRel);
            continue;
        }
        let (served, counted) = (Arc::clone(served), Arc::clone(open));
        let serve = move || {
            // Whoever asks sees an error by the end of the connection.
            let _ = served.serve(&mut connection);
            counted.fetch_sub(1, Ordering::AcqRel);
        };
        if std::thread::Builder::new().spawn(serve).is_err() {
            open.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// An answer: status, type and content.
type Answer = (&'static str, &'static str, Vec<u8>);

const REFUSED: &str = "403 Forbidden";
const TEXT: &str = "text/plain; charset=utf-8";
const BYTES: &str = "application/octet-stream";

fn refusal(status: &'static str) -> Answer {
    (status, TEXT, Vec::new())
}

impl Served {
    fn serve(&self, connection: &mut impl Connection) -> io::Result<()> {
        let end = Instant::now() + LIMIT;
        let Some(request) = http::read(connection, end)? else {
            return Ok(());
        };
        let (status, kind, content) = match request {
            Ok(request) => self.answer(&request),
            Err(status) => refusal(status),
        };
        let lines = format!("Content-Type: {kind}\r\n{SAFETY}");
        http::respond(connection, status, &lines, &content, end)
    }

    fn answer(&self, request: &Request) -> Answer {
        if !self.is_ours(request) || request.method == "OPTIONS" {
            return refusal(REFUSED);
        }
        if request.method != "GET" {
            return refusal("405 Method Not Allowed");
        }
        let ok = "200 OK";
        match request.path.as_str() {
            "/" => return (ok, "text/html; charset=utf-8", page::served().into()),
            "/view.css" => return (ok, "text/css; charset=utf-8", page::STYLE.into()),
            "/view.js" => return (ok, "text/javascript; charset=utf-8", page::SCRIPT.into()),
            _ => {}
        }
        let numbers = |text: &str| -> Option<Vec<u64>> { text.split('/').map(number).collect() };
        let data = request.path.strip_prefix("/data/").and_then(numbers);
        let site = request.path.strip_prefix("/site/").and_then(numbers);
        if data.is_none() && site.is_none() {
            return refusal("404 Not Found");
        }
        if !self.is_known(request) {
            return refusal(REFUSED);
        }
        let now = self.start.elapsed().as_millis();
        self.last.store(now as u64, Ordering::Relaxed);
        let found = match (data.as_deref(), site.as_deref()) {
            (Some(&[part, track, level, number]), _) => {
                let part = usize::try_from(part)
                    .ok()
                    .and_then(|part| Part::ALL.get(part));
                let key = part.zip(track.try_into().ok()).zip(level.try_into().ok());
                let Some(((part, track), level)) = key else {
                    return refusal("404 Not Found");
                };
                self.pyramid.stored(Key {
                    part: *part,
                    track,
                    level,
                    number,
                })
            }
            (_, Some(&[process, call])) => Ok(self.site(process, call)),
            _ => return refusal("404 Not Found"),
        };
        match found {
            Ok(Some(content)) if content.len() <= MOST_BYTES as usize => (ok, BYTES, content),
            // Not an error: a page asks for what lies around a place, where nothing may be.
            Ok(None) => refusal("204 No Content"),
            Ok(Some(_)) | Err(_) => refusal("500 Internal Server Error"),
        }
    }

    fn site(&self, process: u64, call: u64) -> Option<Vec<u8>> {
        let process = process.try_into().ok()?;
        let site = self.site.lock().unwrap_or_else(PoisonError::into_inner);
        site(process, call).map(String::into_bytes)
    }

    /// Whether a request is one of our page, or of somebody who opens it: it names this server, and comes from no other page.
    fn is_ours(&self, request: &Request) -> bool {
        let Ok(Some(host)) = request.line("host") else {
            return false;
        };
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) => (name, port.parse::<u16>().ok()),
            None => (host, None),
        };
        let is_here = match self.port {
            Some(own) => port == Some(own) && host.ends_with(&format!(":{own}")),
            // The port is that of whoever leads it here.
            None => port.is_some() || host == name,
        };
        let is_ours = |line: &str| line.strip_prefix("http://") == Some(host);
        ["127.0.0.1", "localhost", "[::1]"].contains(&name)
            && is_here
            && request
                .line("origin")
                .is_ok_and(|origin| origin.is_none_or(is_ours))
            && request
                .line("sec-fetch-site")
                .is_ok_and(|site| site.is_none_or(|site| ["same-origin", "none"].contains(&site)))
    }

    /// Whether a request has the token. The time that this takes does not depend on how much of it is right.
    fn is_known(&self, request: &Request) -> bool {
        let Ok(Some(given)) = request.line("x-rpd-token") else {
            return false;
        };
        let pairs = given.bytes().zip(self.token.bytes());
        let difference = pairs.fold(0, |all, (a, b)| std::hint::black_box(all | (a ^ b)));
        given.len() == self.token.len() && difference == 0
    }
}

/// A number of a path: digits alone.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}
