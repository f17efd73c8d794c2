//! What is kept of a recording.

use rpd_core::session::Session;

use crate::collectives::{self, Collective};

/// A recording among several.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Member {
    /// Name of the machine; empty when it is not known.
    pub host: String,
    /// Rank; `None` for a process that no launcher numbered.
    pub rank: Option<u64>,
    /// Number of ranks; `None` where the launcher does not tell.
    pub size: Option<u64>,
    /// Name of the launcher; empty without a rank.
    pub launcher: String,
    /// Id of the process.
    pub pid: u32,
    /// File name of the program.
    pub program: String,
    /// Whether recording ended in good order: the process was not killed.
    pub ended: bool,
    /// Number of records.
    pub records: usize,
    /// Distance of the clock of the recording from the time of day.
    pub offsets: ClockOffsets,
    /// Collective operations, in the order of their calls.
    pub collectives: Vec<Collective>,
}

/// Time of day minus the clock of the recording, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClockOffsets {
    /// When recording began; `None` when it is not known.
    pub first: Option<i64>,
    /// When recording ended; `None` when it is not known.
    pub last: Option<i64>,
}

impl Member {
    /// What is kept of a session. `barriers` are the messages of ROCTx ranges in which all ranks wait for one another.
    pub fn from_session(session: &Session, barriers: &[String]) -> Member {
        let process = &session.process;
        let place = process.launched();
        let mut offsets = process
            .anchors()
            .map(|anchor| anchor.real_time.wrapping_sub(anchor.time.0).cast_signed());
        let first = offsets.next();
        let path = process.command.first().unwrap_or(&process.executable);
        let origin = session.origin.as_ref();
        Member {
            host: origin.map_or_else(String::new, |origin| origin.hostname.clone()),
            rank: place.rank,
            size: place.size,
            launcher: place.launcher,
            pid: process.pid.0,
            program: path.rsplit('/').next().unwrap_or(path).to_owned(),
            ended: session.ledger.ended,
            records: session.len(),
            offsets: ClockOffsets {
                first,
                last: offsets.next(),
            },
            collectives: collectives::of_session(session, barriers),
        }
    }

    /// What the process is called beside others: host, rank, program.
    pub fn label(&self) -> String {
        let host = if self.host.is_empty() {
            "unknown host"
        } else {
            &self.host
        };
        match self.rank {
            Some(rank) => format!("{host} · rank {rank} · {}[{}]", self.program, self.pid),
            None => format!("{host} · {}[{}]", self.program, self.pid),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpd_core::ids::{Nanoseconds, ProcessId};
    use rpd_core::session::{ClockAnchor, Origin};

    #[test]
    fn member_has_place_host_and_clock_of_its_session() {
        let mut session = Session::new();
        session.origin = Some(Origin {
            hostname: "node7".to_owned(),
            ..Origin::default()
        });
        let process = &mut session.process;
        process.pid = ProcessId(42);
        process.command = vec!["/opt/bin/train".to_owned(), "-x".to_owned()];
        process.init_time = Nanoseconds(1_000);
        process.real_time = 5_000;
        process.last_anchor = Some(ClockAnchor {
            time: Nanoseconds(2_000),
            real_time: 5_990,
        });
        for (name, value) in [("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "8")] {
            process
                .environment
                .push((name.to_owned(), value.to_owned()));
        }
        let member = Member::from_session(&session, &[]);
        assert_eq!((member.rank, member.size), (Some(3), Some(8)));
        assert_eq!(member.label(), "node7 · rank 3 · train[42]");
        let offsets = ClockOffsets {
            first: Some(4_000),
            last: Some(3_990),
        };
        assert_eq!(member.offsets, offsets);
    }
}
