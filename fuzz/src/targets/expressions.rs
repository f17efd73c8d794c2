//! Expressions of metrics: any text has a shape and values, whatever its counters are, or gives an error. The first
//! byte is the number of instances of the counters.

use rpd_metric::evaluate::{evaluate, leaves, shape};
use rpd_metric::expression::Resolution;
use rpd_metric::{Dimension, Expression, Sample, Shape, Table};

use super::assert_one_line;
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "expressions",
    run,
    seeds,
    longest: 4096,
    mutations: 5000,
};

const EXPRESSIONS: &[&str] = &[
    "400*SQ_ACTIVE_INST_VALU/reduce(GRBM_GUI_ACTIVE,max)/CU_NUM",
    "reduce(TCC_HIT,sum,[DIMENSION_XCC,DIMENSION_INSTANCE])/(reduce(TCC_HIT,sum)+reduce(TCC_MISS,sum))",
    "reduce(select(TCC_HIT,[DIMENSION_XCC=[0:1],DIMENSION_SHADER_ENGINE=[0,2:3]]),avr)",
    "accumulate(SQ_LEVEL_WAVES,HIGH_RES)/reduce(SQ_WAVES,min) // comment\n*1.5e3",
    "A-(B*(C-D))/0+0-x",
    "1/0",
    "((((((((A))))))))",
];

fn seeds() -> Vec<Vec<u8>> {
    let numbers = 0u8..;
    let texts = numbers.zip(EXPRESSIONS);
    texts
        .map(|(number, text)| [&[number * 31], text.as_bytes()].concat())
        .collect()
}

fn run(data: &[u8]) {
    let Some((&instances, text)) = data.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let expression = match Expression::parse(text) {
        Ok(expression) => expression,
        Err(error) => return assert_one_line(&error.to_string()),
    };
    assert_eq!(
        Expression::parse(expression.text()).as_ref(),
        Ok(&expression)
    );
    let dimensions = Shape::new([
        (Dimension::Xcc, instances & 3),
        (Dimension::ShaderEngine, instances >> 2 & 3),
        (Dimension::Instance, instances >> 4 & 3),
    ]);
    let mut table = Table::new();
    let names = expression.names();
    for name in &names {
        table.leaf(*name, dimensions.clone());
        for resolution in [Resolution::None, Resolution::Low, Resolution::High] {
            let values = dimensions
                .positions()
                .enumerate()
                .map(|(number, position)| Sample {
                    position,
                    value: number as f64,
                });
            table.set(*name, resolution, values.collect());
        }
    }
    if let Err(error) = evaluate(&expression, &table) {
        assert_one_line(&error.to_string());
    }
    // Under its own name, and under one that it uses: a circle.
    let circle = names.first().map(|name| (*name).to_owned());
    for name in ["itself".to_owned()].into_iter().chain(circle) {
        let mut table = Table::new();
        for name in &names {
            table.leaf(*name, dimensions.clone());
        }
        table.derive(name.clone(), expression.clone());
        if let Err(error) = shape(&name, &table) {
            assert_one_line(&error.to_string());
        }
        if let Err(error) = leaves(&name, &table) {
            assert_one_line(&error.to_string());
        }
    }
}
