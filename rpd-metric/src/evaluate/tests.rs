use std::collections::HashMap;

use super::*;

#[derive(Default)]
struct Table {
    derived: HashMap<&'static str, Expression>,
    raw: HashMap<(&'static str, Resolution), (Shape, Vec<f64>)>,
}

impl Table {
    fn derive(&mut self, name: &'static str, text: &str) -> &mut Self {
        self.derived
            .insert(name, text.parse().expect("an expression"));
        self
    }

    fn raw(&mut self, name: &'static str, shape: &[(Dimension, u8)], values: &[f64]) -> &mut Self {
        let shape = Shape::new(shape.iter().copied());
        self.raw
            .insert((name, Resolution::None), (shape, values.to_vec()));
        self
    }
}

impl Metrics for Table {
    fn expression(&self, name: &str) -> Option<&Expression> {
        self.derived.get(name)
    }
    fn shape(&self, name: &str) -> Option<Shape> {
        let entry = self.raw.iter().find(|((n, _), _)| *n == name)?;
        Some(entry.1.0.clone())
    }
}

impl Values for Table {
    fn values(&self, leaf: Leaf<'_>) -> Option<Vec<Sample>> {
        let (shape, values) = self
            .raw
            .iter()
            .find(|((n, r), _)| *n == leaf.name && *r == leaf.resolution)?
            .1;
        let samples = shape.positions().zip(values);
        Some(
            samples
                .map(|(position, &value)| Sample { position, value })
                .collect(),
        )
    }
}

fn table() -> Table {
    let mut t = Table::default();
    let grid = [(Dimension::Instance, 2), (Dimension::ShaderEngine, 3)];
    t.raw("G", &grid, &[1., 2., 3., 4., 5., 6.])
        .raw("H", &grid, &[2., 2., 2., 0., 2., 2.])
        .raw("L", &[(Dimension::Instance, 4)], &[1., 1., 1., 1.])
        .raw("ONE", &[(Dimension::Instance, 1)], &[10.]);
    t
}

fn numbers(text: &str) -> Vec<f64> {
    let e = text.parse().expect("an expression");
    evaluate(&e, &table())
        .expect("values")
        .iter()
        .map(|s| s.value)
        .collect()
}

fn refused(text: &str) -> EvaluateError {
    evaluate(&text.parse().expect("an expression"), &table()).expect_err("an error")
}

#[test]
fn operators_combine_values_instance_by_instance() {
    assert_eq!(numbers("G+H"), [3., 4., 5., 4., 7., 8.]);
    assert_eq!(numbers("G/H"), [0.5, 1., 1.5, 0., 2.5, 3.]);
    assert_eq!(numbers("G*ONE"), [10., 20., 30., 40., 50., 60.]);
    // The single value stays on its side of the operator.
    assert_eq!(numbers("12/G"), [12., 6., 4., 3., 2.4, 2.]);
    assert_eq!(numbers("ONE-1"), [9.]);
    assert_eq!(numbers("1-ONE"), [-9.]);
}

#[test]
fn dividing_by_zero_gives_zero() {
    assert_eq!(numbers("1/0"), [0.]);
    assert_eq!(numbers("100*ONE/(ONE-10)"), [0.]);
}

#[test]
fn reductions_fold_all_or_some_dimensions() {
    assert_eq!(numbers("reduce(G,sum)"), [21.]);
    assert_eq!(numbers("reduce(G,avr)"), [3.5]);
    assert_eq!(numbers("reduce(G,min)+reduce(G,max)"), [7.]);
    assert_eq!(numbers("reduce(G,sum,[DIMENSION_INSTANCE])"), [3., 7., 11.]);
    assert_eq!(numbers("reduce(G,max,[DIMENSION_SHADER_ENGINE])"), [5., 6.]);
    assert_eq!(
        numbers("reduce(G,sum,[DIMENSION_SHADER_ENGINE,DIMENSION_INSTANCE])"),
        [21.]
    );
}

#[test]
fn select_keeps_the_instances_that_it_names() {
    assert_eq!(numbers("select(G,[DIMENSION_SHADER_ENGINE=[1]])"), [3., 4.]);
    assert_eq!(
        numbers("select(G,[DIMENSION_SHADER_ENGINE=[0,2],DIMENSION_INSTANCE=[1]])"),
        [2., 6.]
    );
    assert_eq!(
        numbers("reduce(select(G,[DIMENSION_SHADER_ENGINE=[0:1]]),sum)"),
        [10.]
    );
    assert_eq!(
        refused("select(G,[DIMENSION_XCC=[1]])"),
        EvaluateError::Nothing("G".into())
    );
    // Both sides of a sum over different engines lie at the same place afterwards.
    let both = "select(G,[DIMENSION_SHADER_ENGINE=[0]])+select(G,[DIMENSION_SHADER_ENGINE=[2]])";
    assert_eq!(numbers(both), [6., 8.]);
}

#[test]
fn operands_with_different_instances_are_refused() {
    assert_eq!(
        refused("G+L"),
        EvaluateError::Instances {
            left: "G".into(),
            right: "L".into()
        }
    );
    let t = table();
    let mut t2 = table();
    t2.derive("X", "G+L");
    assert!(matches!(
        shape("X", &t2),
        Err(EvaluateError::Instances { .. })
    ));
    assert_eq!(shape("G", &t).expect("a shape").instances(), 6);
}

#[test]
fn shapes_have_the_positions_of_the_values() {
    let mut t = table();
    t.derive("A", "2*G")
        .derive("B", "reduce(A,sum,[DIMENSION_INSTANCE])")
        .derive("C", "select(A,[DIMENSION_INSTANCE=[1]])*ONE")
        .derive("D", "reduce(B,sum)/reduce(L,max)")
        .derive("E", "select(G,[DIMENSION_SHADER_ENGINE=[0:1]])");
    for (name, count) in [("A", 6), ("B", 3), ("C", 3), ("D", 1), ("E", 4)] {
        assert_eq!(shape(name, &t).expect(name).instances(), count, "{name}");
        let values = value(name, &t).expect(name);
        let places: Vec<_> = values.iter().map(|s| s.position).collect();
        let expected: Vec<_> = shape(name, &t).expect(name).positions().collect();
        assert_eq!(places, expected, "{name}");
    }
}

#[test]
fn metrics_that_refer_to_themselves_are_refused() {
    let mut t = table();
    t.derive("A", "B+1")
        .derive("B", "reduce(C,sum)")
        .derive("C", "A")
        .derive("S", "S*2");
    assert_eq!(value("A", &t), Err(EvaluateError::Cycle("A".into())));
    assert_eq!(shape("B", &t), Err(EvaluateError::Cycle("B".into())));
    assert_eq!(leaves("S", &t), Err(EvaluateError::Cycle("S".into())));
    // Using a metric twice is not a cycle.
    let mut t = table();
    t.derive("D", "E*E+E").derive("E", "reduce(G,sum)");
    assert_eq!(value("D", &t).expect("a value")[0].value, 21. * 21. + 21.);
}

#[test]
fn unknown_and_uncounted_counters_have_different_errors() {
    assert_eq!(refused("NOPE"), EvaluateError::Unknown("NOPE".into()));
    assert_eq!(
        refused("accumulate(G,HIGH_RES)"),
        EvaluateError::NotCounted("G".into())
    );
    let mut t = table();
    t.derive("A", "accumulate(B,LOW_RES)").derive("B", "G");
    assert_eq!(value("A", &t), Err(EvaluateError::Accumulated("B".into())));
}

#[test]
fn leaves_lists_each_counter_that_has_to_be_counted_once() {
    let mut t = table();
    t.derive("M", "reduce(accumulate(G,HIGH_RES),sum)/P+G")
        .derive("P", "ONE*2+G");
    let leaf = |name, resolution| Leaf { name, resolution };
    assert_eq!(
        leaves("M", &t).expect("leaves"),
        [
            leaf("G", Resolution::High),
            leaf("ONE", Resolution::None),
            leaf("G", Resolution::None)
        ]
    );
}
