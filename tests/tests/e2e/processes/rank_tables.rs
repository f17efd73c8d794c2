//! The tables of several ranks that write to one pipe.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use rpd_tests::{install, workloads};

const RANKS: usize = 4;

/// What rpd writes to standard error in `RANKS` processes that share it, read so slowly that the pipe is full most of the time.
fn shared_output() -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let children: Vec<_> = (0..RANKS)
        .map(|rank| {
            Command::new(install::rpd())
                .args([
                    "--backend",
                    "sim",
                    "--sys-trace",
                    "--stats",
                    "-f",
                    "csv",
                    "-d",
                ])
                .arg(directory.path().join(rank.to_string()))
                .arg("--")
                .arg(workloads::path("vector-ops"))
                .args(["1", "1"])
                .env("OMPI_COMM_WORLD_RANK", rank.to_string())
                .env("OMPI_COMM_WORLD_SIZE", RANKS.to_string())
                .current_dir(directory.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(writer.try_clone().expect("a copy"))
                .spawn()
                .expect("rpd starts")
        })
        .collect();
    drop(writer);
    let mut output = Vec::new();
    let mut piece = [0; 512];
    loop {
        match reader.read(&mut piece).expect("readable") {
            0 => break,
            count => output.extend_from_slice(&piece[..count]),
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    for mut child in children {
        assert!(child.wait().expect("ended").success());
    }
    String::from_utf8(output).expect("text")
}

#[test]
fn tables_of_ranks_name_their_rank_and_are_written_in_one_piece() {
    let output = shared_output();
    // Between the first and the last line of a rank's tables there is no line of anything else.
    let mut ranks: Vec<String> = Vec::new();
    let mut lines = output.lines().peekable();
    while let Some(line) = lines.next() {
        let title = line.split_once(" SUMMARY of vector-ops[");
        let Some((_, process)) = title else { continue };
        let (_, rank) = process.split_once(", rank ").expect("a rank");
        let rank = rank.split_once(" on ").expect("a host").0.to_owned();
        if ranks.last() != Some(&rank) {
            ranks.push(rank);
        }
        assert_eq!(lines.next(), Some(""), "{output}");
        let mut rows = 0;
        while let Some(row) = lines.next_if(|line| line.starts_with("    |")) {
            assert!(row.ends_with('|'), "{row:?}: {output}");
            rows += 1;
        }
        assert!(rows > 2, "{output}");
        assert_eq!(lines.next(), Some(""), "{output}");
    }
    ranks.sort();
    let expected: Vec<String> = (0..RANKS).map(|rank| rank.to_string()).collect();
    assert_eq!(ranks, expected, "{output}");
}
