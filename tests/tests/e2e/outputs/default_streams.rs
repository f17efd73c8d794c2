//! Numbers of streams: those that run in the order of one another have one number.

use std::collections::BTreeMap;

use rpd_tests::run::Rpd;

#[test]
fn default_streams_have_one_number_for_null_and_one_for_each_thread() {
    for provider in ["sdk", "direct"] {
        let outcome = Rpd::new([
            "--kernel-trace",
            "--memory-copy-trace",
            "--provider",
            provider,
            "-f",
            "csv",
        ])
        .workload("streams", [""; 0])
        .success();
        let table = outcome.csv("kernel_trace");
        let mut streams: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (grid, stream) in table
            .numbers("Grid_Size_X")
            .into_iter()
            .zip(table.numbers("Stream_Id"))
        {
            streams.entry(grid / 64).or_default().push(stream);
        }
        let of = |groups: u64| streams[&groups].as_slice();
        assert_eq!(
            (of(1), of(2)),
            ([0].as_slice(), [0].as_slice()),
            "{provider}"
        );
        // The two launches of a thread are in one stream, those of two threads in two.
        let [made] = *of(3) else {
            panic!("{streams:?}")
        };
        let ([first, again], [second, _]) = (of(4), of(5)) else {
            panic!("{streams:?}")
        };
        assert_eq!(first, again, "{provider}: {streams:?}");
        let mut all = vec![0, made, *first, *second];
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 4, "{provider}: {streams:?}");
        // The null stream of some functions is that of the thread.
        assert_eq!(
            outcome.csv("memory_copy_trace").numbers("Stream_Id"),
            [*first],
            "{provider}"
        );
    }
}
