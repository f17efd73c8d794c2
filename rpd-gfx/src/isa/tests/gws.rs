//! Waves that wait for other workgroups through global wave sync.

use super::*;
use std::sync::atomic::AtomicBool;

static SCHEDULE: &[u8] = include_bytes!("../../../testdata/schedule.co");

/// Memory of a device whose resources for global wave sync are its own.
struct Own(WaveSync);

impl Memory for Own {
    fn changes(&self) -> u64 {
        0
    }

    fn extent(&self, address: u64, write: bool) -> Option<Extent> {
        Everything.extent(address, write)
    }

    fn wave_sync(&self) -> &WaveSync {
        &self.0
    }
}

fn run(own: &Own, name: &str, groups: u32, seed: Option<u64>, threads: usize, args: &[&[u8]]) {
    let module = Module::load(SCHEDULE);
    let result = module.dispatch(
        name,
        [128 * groups, 1, 1],
        [128, 1, 1],
        0,
        args,
        |dispatch| {
            let stop = AtomicBool::new(false);
            let control = Control {
                threads,
                stop: &stop,
                seed,
            };
            run_dispatch(dispatch, own, &control)
        },
    );
    result.unwrap();
}

#[test]
fn workgroups_exchange_values_at_barriers_of_the_grid() {
    for (groups, rounds, threads, seed) in [
        (1u32, 3u32, 1, None),
        (7, 8, 1, None),
        (40, 9, 4, None),
        (40, 5, 1, Some(1)),
        (7, 20, 1, Some(2)),
    ] {
        let own = Own(WaveSync::new());
        run(
            &own,
            "grid_init",
            1,
            None,
            1,
            &[&(groups - 1).to_le_bytes()],
        );
        let (mut values, mut next): (Vec<u32>, Vec<u32>) = (
            (0..groups).map(|n| n * n + 1).collect(),
            vec![0; groups as usize],
        );
        let mut expected = values.clone();
        for _ in 0..rounds {
            let before = expected.clone();
            for n in 0..groups as usize {
                expected[n] = before[n].wrapping_add(before[(n + 1) % groups as usize]);
            }
        }
        let args: [&[u8]; 4] = [
            &pointer(&mut values),
            &pointer(&mut next),
            &groups.to_le_bytes(),
            &rounds.to_le_bytes(),
        ];
        run(&own, "grid_rounds", groups, seed, threads, &args);
        let found = if rounds % 2 == 1 { next } else { values };
        assert_eq!(found, expected, "{groups} workgroups, {rounds} rounds");
    }
}

#[test]
fn a_gws_semaphore_releases_one_wave_for_each_unit() {
    for (threads, seed) in [(1, None), (3, None), (1, Some(4))] {
        let own = Own(WaveSync::new());
        let (mut count, mut order) = (vec![0u32], vec![0u32; 9]);
        let module = Module::load(SCHEDULE);
        let args: [&[u8]; 3] = [
            &pointer(&mut count),
            &pointer(&mut order),
            &9u32.to_le_bytes(),
        ];
        let run = module.dispatch(
            "semaphore",
            [9 * 64, 1, 1],
            [64, 1, 1],
            0,
            &args,
            |dispatch| {
                let stop = AtomicBool::new(false);
                let control = Control {
                    threads,
                    stop: &stop,
                    seed,
                };
                run_dispatch(dispatch, &own, &control)
            },
        );
        run.unwrap();
        assert_eq!(count, [8]);
        let mut turns = order[1..].to_vec();
        turns.sort_unstable();
        assert_eq!(turns, (1..9).collect::<Vec<u32>>());
    }
}
