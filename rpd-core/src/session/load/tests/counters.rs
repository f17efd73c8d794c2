//! Counters and counted values.

use super::*;

#[test]
fn loading_joins_counters_with_values_in_any_order() {
    let run = tempfile::tempdir().expect("a directory");
    let directory = SpoolDirectory::create(run.path()).expect("a spool");
    let mut meta = StreamWriter::new(&directory, "meta".into(), stream::META, 0);
    put!(
        meta,
        PROCESS,
        0,
        Process { pid: 7 },
        &counted(&["app", "/", "/app", ""])
    );
    let mut values = StreamWriter::new(&directory, "t7".into(), stream::THREAD, 7);
    for (dispatch, agent, start, counts) in [
        (
            2,
            5,
            500,
            [(0x21, 3.0), (0x10, 1.0), (0x20, 4.0)].as_slice(),
        ),
        (1, 5, 400, [(0x20, 9.0), (0x99, 1.0)].as_slice()),
        // A GPU of the same architecture, whose counters have the same ids.
        (3, 6, 600, [(0x20, 8.0)].as_slice()),
    ] {
        let mut fixed = format::CountedDispatch::new_zeroed();
        fixed.dispatch.dispatch = dispatch;
        fixed.dispatch.agent = agent;
        fixed.dispatch.start = start;
        fixed.dispatch.end = start + 10;
        fixed.count = counts.len() as u32;
        let tail: Vec<u8> = counts
            .iter()
            .flat_map(|&(instance, value)| {
                format::CountedValue { instance, value }.as_bytes().to_vec()
            })
            .collect();
        fixed.dispatch.header = RecordKind::Counted.head(tail.len());
        assert!(values.append_parts(fixed.as_bytes(), &[&tail]));
    }
    for id in [1, 2, 3, 4] {
        put!(values, SELECTED, 0, Selected { dispatch: id }, &[]);
    }
    let mut tail = counted(&["SQ_WAVES", "waves", "SQ", ""]);
    tail.extend(16u32.to_le_bytes());
    tail.extend([3u64, 2].as_bytes());
    tail.extend(counted(&["DIMENSION_SHADER_ENGINE"]));
    for agent in [6, 5] {
        put!(
            meta,
            COUNTER,
            0,
            Counter {
                id: 2,
                agent: agent
            },
            &tail
        );
    }
    put!(
        meta,
        COUNTER,
        2,
        Counter { id: 1, agent: 5 },
        &counted(&["Ratio", "", "", "A/B"])
    );
    for (id, counter, position) in [(0x21u64, 2u64, 1u64), (0x20, 2, 0), (0x10, 1, 0)] {
        let pair = [3, position];
        put!(
            meta,
            COUNTER_INSTANCE,
            0,
            CounterInstance {
                id: id,
                counter: counter,
                count: 1
            },
            pair.as_bytes()
        );
    }
    drop((meta, values));
    // In memory, and through files.
    for rows in [None, Some(1), Some(2)] {
        let load = LoadOptions {
            rows,
            ..LoadOptions::default()
        };
        let session = Session::open(directory.path(), load).expect("a session");
        assert_eq!(session.counted.values.is_mapped(), rows.is_some());
        let names: Vec<&str> = session
            .counters
            .iter()
            .map(|counter| &*counter.name)
            .collect();
        assert_eq!(names, ["Ratio", "SQ_WAVES", "SQ_WAVES"]);
        assert!(session.counters[0].is_derived && session.counters[0].dimensions.is_empty());
        assert_eq!(session.counters[1].dimensions[0].size, 2);
        assert_eq!(session.counters[1].instances[1].positions, [(3, 1)]);
        let counted = &session.counted;
        assert_eq!(counted.dispatches.dispatch[0].0, 1, "ordered by start");
        assert_eq!(counted.sums(0).collect::<Vec<_>>(), [(1, 9.0)]);
        assert_eq!(counted.sums(1).collect::<Vec<_>>(), [(0, 1.0), (1, 7.0)]);
        assert_eq!(counted.sums(2).collect::<Vec<_>>(), [(2, 8.0)]);
        assert_eq!(session.counters[2].agent.0, 6);
        let damage = &session.ledger.damage;
        assert!(
            damage.len() == 1 && damage[0].starts_with("1 counted value"),
            "{damage:?}"
        );
        assert_eq!(session.ledger.uncounted, 1);
        assert_eq!(session.process.fini_time.0, 610);
    }
}
