//! A simple implementation of the evaluator's traits: counters, metrics and values that a caller lists.

use std::collections::HashMap;

use crate::{
    dimension::Shape,
    evaluate::{Leaf, Metrics, Sample, Values},
    expression::{Expression, Resolution},
};

/// Counters and metrics by name, with values for some of them.
#[derive(Debug, Clone, Default)]
pub struct Table {
    derived: HashMap<String, Expression>,
    shapes: HashMap<String, Shape>,
    values: HashMap<(String, Resolution), Vec<Sample>>,
}

impl Table {
    /// Creates an empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a derived counter.
    pub fn derive(&mut self, name: impl Into<String>, expression: Expression) -> &mut Self {
        self.derived.insert(name.into(), expression);
        self
    }

    /// Adds a counter of the hardware, or a constant of the agent, by its dimensions.
    pub fn leaf(&mut self, name: impl Into<String>, shape: Shape) -> &mut Self {
        self.shapes.insert(name.into(), shape);
        self
    }

    /// Sets the values of a counter or of a metric. A metric with values, from a pass in which the provider computed
    /// it, is not evaluated.
    pub fn set(
        &mut self,
        name: impl Into<String>,
        resolution: Resolution,
        values: Vec<Sample>,
    ) -> &mut Self {
        self.values.insert((name.into(), resolution), values);
        self
    }

    fn has_values(&self, name: &str) -> bool {
        self.values
            .contains_key(&(name.to_owned(), Resolution::None))
    }
}

impl Metrics for Table {
    fn expression(&self, name: &str) -> Option<&Expression> {
        self.derived.get(name).filter(|_| !self.has_values(name))
    }

    fn shape(&self, name: &str) -> Option<Shape> {
        let known = self.shapes.get(name).cloned();
        known.or_else(|| self.has_values(name).then(Shape::single))
    }
}

impl Values for Table {
    fn values(&self, leaf: Leaf<'_>) -> Option<Vec<Sample>> {
        self.values
            .get(&(leaf.name.to_owned(), leaf.resolution))
            .cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate;

    #[test]
    fn a_table_uses_the_values_of_a_metric_before_its_expression() {
        let metric = |text: &str| text.parse::<Expression>().expect("an expression");
        let mut table = Table::new();
        table
            .leaf("A", Shape::single())
            .derive("B", metric("2*A"))
            .derive("C", metric("100*B/A"))
            .set("A", Resolution::None, vec![Sample::single(5.0)]);
        let value = |table: &Table| evaluate::value("C", table).map(|v| v[0].value);
        assert_eq!(value(&table), Ok(200.0));
        table.set("B", Resolution::None, vec![Sample::single(20.0)]);
        assert_eq!(value(&table), Ok(400.0));
        assert_eq!(evaluate::leaves("C", &table).expect("leaves").len(), 2);
    }
}
