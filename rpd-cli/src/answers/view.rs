//! `rpd view`: the timeline, in the browser.

use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::Parser;
use rpd_analysis::records::Records as _;
use rpd_core::compat::Compat;
use rpd_core::storage::temporary::TemporaryDirectory;
use rpd_formats::rocpd::read::Database;
use rpd_view::export::{Exported, MOST_RECORDS, export};
use rpd_view::pyramid::{self, Error, Pyramid};
use rpd_view::server::{Server, Site};
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::feed::Loaded;
use crate::commands::{Inputs, Naming, destination, parse, write_output};
use crate::failure::Failure;

const NAME: &str = "view";
/// Ending of a file of tiles, behind the name of its database.
const ENDING: &str = "rpdview";

/// Show the timeline of a recording in the browser
#[derive(Debug, Parser)]
#[command(
    after_help = "The page comes from a server that only this machine reaches, with a token that is in its address. It ends with \
    the terminal, at Ctrl-C, or when nobody has looked for a while. Tiles of the recording are kept beside the database, in a file that \
    ends in .rpdview, or below ~/.cache/rpd where that place cannot be written."
)]
struct Arguments {
    #[command(flatten)]
    inputs: Inputs,
    /// Make the file of tiles, and end
    #[arg(long, conflicts_with_all = ["export", "socket", "port", "idle"])]
    build_only: bool,
    /// Write the page as one file that needs no server; of more than 2 million records the longest are in it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["socket", "port", "idle"])]
    export: Option<PathBuf>,
    /// Show only records that overlap this stretch: nanoseconds as in the database, or shares of its span such as 25%..30%
    #[arg(long, value_name = "FROM..TO")]
    window: Option<String>,
    /// Do not start the browser
    #[arg(long)]
    no_browser: bool,
    /// Port of 127.0.0.1 to serve on [default: a free one]
    #[arg(long, value_name = "PORT", conflicts_with = "socket")]
    port: Option<u16>,
    /// Socket to serve on instead of a port, which only this user can open
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Minutes without a request after which to end
    #[arg(long, value_name = "MINUTES", default_value = "30", value_parser = minutes)]
    idle: Duration,
    #[command(flatten)]
    naming: Naming,
}

fn minutes(text: &str) -> Result<Duration, String> {
    let value: f64 = text.parse().map_err(|_| "expected minutes".to_owned())?;
    match value {
        0.001..=1e6 => Ok(Duration::from_secs_f64(value * 60.0)),
        _ => Err("expected minutes from 0.001 to 1000000".to_owned()),
    }
}

/// Runs `rpd view`; returns the exit status.
pub(crate) fn run(words: &[OsString], compat: Compat) -> Result<u8> {
    let Some(given) = parse::<Arguments>(NAME, words)? else {
        return Ok(0);
    };
    let paths = given.inputs.paths(NAME)?;
    let window = given.window.as_deref().map(window).transpose()?;
    // Refused before anything is made.
    let output = given.export.as_deref();
    let output = output.map(|path| destination(NAME, Some(path), &paths));
    let output = output.transpose()?;
    let tiles = tiles(&paths, &given.naming, window)?;
    if let Some(output) = output {
        let command = format!("rpd view {}", paths[0].display());
        let mut exported = None;
        write_output(output, compat, |out| {
            exported = Some(export(&tiles.pyramid, MOST_RECORDS, &command, out)??);
            Ok(())
        })?;
        if let Some(Exported {
            records,
            least: Some(least),
        }) = exported
        {
            eprintln!(
                "rpd: {NAME}: of {records} records those of at least {least} ns are in the file one by one; --window FROM..TO chooses others"
            );
        }
        return Ok(0);
    }
    if given.build_only {
        return Ok(0);
    }
    let naming = given.naming.clone();
    serve(&given, tiles, site(paths, naming)?)
}

/// A window as it is given.
#[derive(Debug, Clone, Copy)]
struct Window([Bound; 2]);

/// An instant: a time of the database, or a share of its span.
#[derive(Debug, Clone, Copy)]
enum Bound {
    At(u64),
    Share(f64),
}

fn window(text: &str) -> Result<Window, Failure> {
    let wrong = || {
        Failure::usage(format!(
            "{NAME}: --window '{text}': expected FROM..TO, each nanoseconds or a percentage, such as 25%..30%"
        ))
    };
    let instant = |text: &str| match text.trim().strip_suffix('%') {
        Some(share) => {
            let share = share.trim().parse().ok();
            share
                .filter(|share| (0.0..=100.0).contains(share))
                .map(Bound::Share)
        }
        None => text.trim().parse().ok().map(Bound::At),
    };
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let ends = (instant(from), instant(to));
    let (Some(from), Some(to)) = ends else {
        return Err(wrong());
    };
    Ok(Window([from, to]))
}

impl Window {
    /// The instants, in a recording of which the span is known.
    fn resolve(self, (first, last): (u64, u64)) -> Result<(u64, u64)> {
        let [from, to] = self.0.map(|instant| match instant {
            Bound::At(at) => at,
            Bound::Share(share) => first + ((last - first) as f64 * share / 100.0).round() as u64,
        });
        if from >= to {
            return Err(Failure::failed(format!(
                "{NAME}: the window ends ({to}) before it begins ({from}); records lie between {first} and {last}"
            ))
            .into());
        }
        Ok((from, to))
    }
}

/// Tiles that can be shown.
struct Tiles {
    pyramid: Pyramid,
    /// The directory that they are in where they are not kept.
    _directory: Option<TemporaryDirectory>,
}

/// What tells whether tiles are still those of the databases.
fn identity(paths: &[PathBuf], naming: &Naming) -> Result<String> {
    let mut inputs = Vec::new();
    for path in paths {
        let database = Database::open(path)?;
        let found = std::fs::metadata(path)
            .with_context(|| format!("{} cannot be read", path.display()))?;
        let recordings = database.recordings().iter();
        inputs.push(json!({
            "path": std::path::absolute(path)?,
            "size": found.size(),
            "time": format!("{}.{:09}", found.mtime(), found.mtime_nsec()),
            "recordings": recordings.map(|recording| &recording.guid).collect::<Vec<_>>(),
        }));
    }
    let version = env!("CARGO_PKG_VERSION");
    Ok(json!({ "rpd": version, "names": format!("{naming:?}"), "inputs": inputs }).to_string())
}

/// Places of tiles: beside the first database, and below the user's cache directory.
fn places(paths: &[PathBuf], identity: &str) -> Vec<PathBuf> {
    let others = match paths.len() {
        1 => String::new(),
        count => format!(".and-{}-more", count - 1),
    };
    let mut name = paths[0].as_os_str().to_owned();
    name.push(format!("{others}.{ENDING}"));
    let mut places = vec![PathBuf::from(name)];
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.filter(|path| path.is_absolute()).or_else(|| {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        home.map(|home| home.join(".cache"))
    });
    if let Some(cache) = cache {
        let mut hasher = DefaultHasher::new();
        identity.hash(&mut hasher);
        places.push(cache.join(format!("rpd/{:016x}.{ENDING}", hasher.finish())));
    }
    places
}

/// Opens the tiles of databases, or makes them.
fn tiles(paths: &[PathBuf], naming: &Naming, window: Option<Window>) -> Result<Tiles> {
    let identity = identity(paths, naming)?;
    if let Some(window) = window {
        let directory = TemporaryDirectory::new()?;
        let path = directory.path().join(format!("window.{ENDING}"));
        let loaded = Loaded::read(paths, naming)?;
        let span = span(&loaded).ok_or(Error::Empty)?;
        let window = window.resolve(span)?;
        make(&loaded, Some(window), &identity, &path)?;
        return Ok(Tiles {
            pyramid: Pyramid::open(&path)?,
            _directory: Some(directory),
        });
    }
    let places = places(paths, &identity);
    // What cannot be opened or is of other recordings is made anew.
    let mut kept = places.iter().filter_map(|path| Pyramid::open(path).ok());
    if let Some(pyramid) = kept.find(|pyramid| pyramid.identity() == identity) {
        return Ok(Tiles {
            pyramid,
            _directory: None,
        });
    }
    let loaded = Loaded::read(paths, naming)?;
    let (beside, cache) = (&places[0], places.get(1));
    let path = match (make(&loaded, None, &identity, beside), cache) {
        (Ok(()), _) => beside,
        (Err(error), Some(cache)) if is_unwritable(&error) => {
            let directory = cache.parent().unwrap_or(cache);
            let mut builder = std::fs::DirBuilder::new();
            let made = builder.recursive(true).mode(0o700).create(directory);
            made.with_context(|| format!("{} cannot be made", directory.display()))?;
            make(&loaded, None, &identity, cache)?;
            cache
        }
        (Err(error), _) => return Err(error.into()),
    };
    Ok(Tiles {
        pyramid: Pyramid::open(path)?,
        _directory: None,
    })
}

/// Whether a place cannot be written, so that another one has to serve.
fn is_unwritable(error: &Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, PermissionDenied, ReadOnlyFilesystem};
    let kinds = [NotADirectory, PermissionDenied, ReadOnlyFilesystem];
    matches!(error, Error::Io { source, .. } if kinds.contains(&source.kind()))
}

fn make(
    loaded: &Loaded,
    window: Option<(u64, u64)>,
    identity: &str,
    path: &Path,
) -> Result<(), Error> {
    let begin = Instant::now();
    let built = pyramid::build(loaded, window, identity, path)?;
    if loaded.implausible > 0 {
        eprintln!(
            "rpd: {} operations have times that cannot be; they are left out",
            loaded.implausible
        );
    }
    let kept = match window {
        // They go when the command ends.
        Some(_) => String::new(),
        None => format!(" in {}", path.display()),
    };
    notice!(
        "rpd: {NAME}: {} records in {} tracks, {:.1} MB of tiles{kept} ({:.1} s)",
        built.records,
        built.tracks,
        built.bytes as f64 / 1e6,
        begin.elapsed().as_secs_f64()
    );
    Ok(())
}

/// First instant and end of all records.
fn span(loaded: &Loaded) -> Option<(u64, u64)> {
    let ops = loaded.ops().map(|op| (op.start, op.end));
    let calls = loaded.calls().map(|call| (call.start, call.end));
    let ranges = loaded.ranges().map(|range| (range.start, range.end));
    let all = ops.chain(calls).chain(ranges);
    all.reduce(|span, next| (span.0.min(next.0), span.1.max(next.1)))
}

/// Tells places in the program's source. What this needs is read when the first place is asked for, in a thread of its own.
fn site(paths: Vec<PathBuf>, naming: Naming) -> Result<Site> {
    type Asked = ((u32, u64), Sender<Option<String>>);
    let (ask, asked): (Sender<Asked>, Receiver<Asked>) = channel();
    let answer = move || {
        let mut loaded: Option<Option<Loaded>> = None;
        while let Ok(((process, call), reply)) = asked.recv() {
            let loaded = loaded.get_or_insert_with(|| Loaded::read(&paths, &naming).ok());
            let place = loaded
                .as_ref()
                .and_then(|loaded| loaded.site(process, call));
            // Nobody may wait any more.
            let _ = reply.send(place);
        }
    };
    std::thread::Builder::new().spawn(answer)?;
    Ok(Box::new(move |process, call| {
        let (reply, place) = channel();
        ask.send(((process, call), reply)).ok()?;
        place.recv().ok().flatten()
    }))
}

fn serve(given: &Arguments, tiles: Tiles, site: Site) -> Result<u8> {
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&ended))?;
    }
    let server = match &given.socket {
        Some(path) => Server::on_socket(path, tiles.pyramid, site)
            .with_context(|| format!("{NAME}: --socket {}", path.display()))?,
        None => {
            let port = given.port.unwrap_or(0);
            Server::on_port(port, tiles.pyramid, site)
                .with_context(|| format!("{NAME}: 127.0.0.1:{port}"))?
        }
    };
    let address = server.address();
    crate::print(&format!("{address}\n"))?;
    match (&given.socket, server.port()) {
        (Some(path), _) => {
            let path = std::path::absolute(path)?;
            eprintln!(
                "rpd: {NAME}: ssh -L 8000:{} THIS-MACHINE leads port 8000 of another machine here; open http://localhost:8000 with what is printed behind it",
                path.display()
            );
        }
        (None, Some(port)) if std::env::var_os("SSH_CONNECTION").is_some() => {
            eprintln!(
                "rpd: {NAME}: ssh -L {port}:127.0.0.1:{port} THIS-MACHINE leads the port from another machine here"
            );
        }
        (None, _) => {}
    }
    if !given.no_browser && given.socket.is_none() {
        start_browser(&address);
    }
    server.run(given.idle, &ended)?;
    Ok(0)
}

/// Starts the browser, where there is a screen of this machine.
fn start_browser(address: &str) {
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    if !has_screen {
        return;
    }
    let mut command = Command::new("xdg-open");
    command.arg(address);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    match command.spawn() {
        Ok(mut child) => {
            // The child is waited for, so that it does not stay as a zombie.
            let _ = std::thread::Builder::new().spawn(move || child.wait());
        }
        Err(_) => {
            eprintln!("rpd: {NAME}: xdg-open cannot be started; open the address in a browser")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_times_or_shares() {
        let resolved = |text: &str| window(text).map(|window| window.resolve((1000, 2000)).ok());
        assert_eq!(
            resolved("1100..1300").expect("a window"),
            Some((1100, 1300))
        );
        assert_eq!(resolved("25%..50%").expect("a window"), Some((1250, 1500)));
        assert_eq!(resolved("50%..25%").expect("a window"), None);
        for text in ["", "5", "a..b", "1..", "-1%..5%", "0..101%"] {
            assert!(window(text).is_err(), "{text}");
        }
    }
}
