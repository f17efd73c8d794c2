use super::*;

#[test]
fn collector_options_are_restored_from_their_text_one_by_one() {
    for (key, get, set) in FLAGS {
        let mut options = CollectorOptions::default();
        set(&mut options, true);
        assert!(get(&options), "{key}");
        assert_eq!(options.to_text(), format!("{key}=1"));
        assert_eq!(
            CollectorOptions::from_text(&options.to_text()),
            options,
            "{key}"
        );
    }
}

#[test]
fn every_collector_option_has_a_key() {
    let keys: Vec<&str> = FLAGS.iter().map(|flag| flag.0).collect();
    let mut text = keys.join(",");
    text += ",counters=SQ_WAVES+GRBM_COUNT:0/TCC_HIT,group_interval=3,iterations=1:3+5:5,periods=0:10:2+1:2:0,environment=all,variables=A+B";
    text +=
        ",stacks=merged,stack_apis=hsa_*+!roctx*,stack_depth=9,stack_every=3,stack_min_duration=70";
    text += ",capture_staging=8,capture_max_bytes=9,capture_accesses=inst";
    text += ",provider=direct,recent_bytes=7,spool_limit=8,cuda_graphs=node";
    let traced = ThreadTraceOptions {
        gpus: vec![0],
        counters: vec![TracedCounter {
            name: "SQ_WAVES".to_owned(),
            simds: 1,
        }],
        serialize_all: true,
        no_detail: true,
        target_counters: true,
        no_intercept: true,
        ..ThreadTraceOptions::default()
    };
    text += &format!(
        ",pc_sampling=host_trap:time:1,thread_trace={}",
        traced.to_text()
    );
    let all_on = CollectorOptions::from_text(&text);
    assert_eq!(all_on.provider, ProviderChoice::Direct);
    assert_eq!(all_on.recent_bytes, Some(7));
    assert_eq!(all_on.cuda_graphs, CudaGraphs::Node);
    let fields = format!("{all_on:?}");
    assert!(!fields.contains("false"), "{fields}");
    assert!(!fields.contains("[]"), "{fields}");
    // A field without a key has the value that it has without any text.
    let (default, all) = (CollectorOptions::default(), format!("{all_on:#?}"));
    for line in format!("{default:#?}").lines() {
        let is_field = line.contains(": ") && line.ends_with(',');
        assert!(
            !is_field || !all.lines().any(|other| other == line),
            "{line}"
        );
    }
    assert_eq!(all_on.counters.groups[0][1].device, Some(0));
    assert_eq!(all_on.counters.groups[1][0].to_string(), "TCC_HIT");
    assert_eq!(all_on.counters.group_interval, 3);
    assert_eq!(all_on.counters.iterations.len(), 2);
    assert_eq!(all_on.periods[1].delay, 1);
    let capture = all_on.capture;
    assert_eq!((capture.staging, capture.max_bytes), (8, Some(9)));
    assert_eq!(capture.accesses, AccessTrace::Inst);
    assert_eq!(all_on.stacks.mode, StackMode::Merged);
    assert_eq!(all_on.stacks.apis, ["hsa_*", "!roctx*"]);
    let stacks = &all_on.stacks;
    assert_eq!(
        (stacks.depth, stacks.every, stacks.min_duration),
        (9, 3, 70)
    );
    assert_eq!(CollectorOptions::from_text(&all_on.to_text()), all_on);
}

#[test]
fn collector_options_ignore_unknown_keys_and_read_zero_as_off() {
    let options = CollectorOptions::from_text("kernel=1,,from_the_future=7,marker=0,=,x");
    assert!(options.traces.kernel);
    assert!(!options.traces.marker);
    assert_eq!(CollectorOptions::from_text(""), CollectorOptions::default());
}
