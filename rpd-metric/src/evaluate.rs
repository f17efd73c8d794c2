//! Values of metrics, the counters they are made of, and the instances they have.

use std::collections::{HashMap, HashSet};

use crate::{
    dimension::{Dimension, Position, Shape},
    expression::{Expression, Node, Operator, Reduction, Resolution},
};

/// Deepest chain of metrics that are made of metrics.
pub(crate) const MAX_CHAIN: usize = 32;

/// The value of one instance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Position of the instance.
    pub position: Position,
    /// Value of the counter at the position.
    pub value: f64,
}

impl Sample {
    /// A value without dimensions.
    pub const fn single(value: f64) -> Self {
        Self {
            position: Position::ORIGIN,
            value,
        }
    }
}

/// Access to the definitions of counters by name.
pub trait Metrics {
    /// The expression of a derived counter; `None` for everything else.
    fn expression(&self, name: &str) -> Option<&Expression>;
    /// The dimensions of a counter that is not derived, or of a constant; `None` when there is none of that
    /// name.
    fn shape(&self, name: &str) -> Option<Shape>;
}

/// Access to the values that were counted.
pub trait Values: Metrics {
    /// The values of a counter that is not derived, one for each instance; `None` when it was not counted.
    fn values(&self, leaf: Leaf<'_>) -> Option<Vec<Sample>>;
}

/// An operand that an expression refers to, directly or through other metrics: a counter that is not derived, or a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Leaf<'a> {
    /// Name of the counter.
    pub name: &'a str,
    /// Accumulation of the counter over time.
    pub resolution: Resolution,
}

/// Fault for which a metric cannot be computed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvaluateError {
    /// No counter has this name.
    #[error("there is no counter `{0}`")]
    Unknown(String),
    /// The counter was not counted.
    #[error("`{0}` was not counted")]
    NotCounted(String),
    /// A metric refers to itself, directly or through others.
    #[error("`{0}` refers to itself")]
    Cycle(String),
    /// Metrics are nested too deeply.
    #[error("`{0}` refers to more than {MAX_CHAIN} nested metrics")]
    Deep(String),
    /// The operand is not a counter: only counters can be accumulated.
    #[error("`{0}` is derived, so it cannot be accumulated")]
    Accumulated(String),
    /// The two parts have different instances.
    #[error("`{left}` and `{right}` have different instances")]
    Instances {
        /// The left operand as text.
        left: String,
        /// The right operand as text.
        right: String,
    },
    /// The selection contains no instance.
    #[error("no instance of `{0}` is selected")]
    Nothing(String),
}

/// The values of a counter or metric.
///
/// # Errors
/// When a counter that it refers to does not exist or was not counted, or when instances differ.
pub fn value(name: &str, from: &impl Values) -> Result<Vec<Sample>, EvaluateError> {
    Walk {
        from,
        chain: vec![],
        known: HashMap::new(),
    }
    .named(name, Resolution::None)
}

/// The values of an expression that has no name.
///
/// # Errors
/// As with [`value`].
pub fn evaluate(expression: &Expression, from: &impl Values) -> Result<Vec<Sample>, EvaluateError> {
    Walk {
        from,
        chain: vec![],
        known: HashMap::new(),
    }
    .node(expression.root())
}

/// The dimensions of a counter or metric.
///
/// # Errors
/// When a counter that it refers to does not exist, or when instances differ.
pub fn shape(name: &str, from: &impl Metrics) -> Result<Shape, EvaluateError> {
    Shapes {
        from,
        chain: vec![],
        known: HashMap::new(),
    }
    .named(name, Resolution::None)
}

/// The counters and constants that a counter or metric refers to, directly or through other metrics: each once, in the
/// order of first use.
///
/// # Errors
/// When something that it refers to does not exist, or refers to itself.
pub fn leaves<'a>(name: &'a str, from: &'a impl Metrics) -> Result<Vec<Leaf<'a>>, EvaluateError> {
    let mut leaves = Leaves {
        from,
        chain: vec![],
        done: HashSet::new(),
        found: Vec::new(),
    };
    leaves.collect(name, Resolution::None)?;
    Ok(leaves.found)
}

struct Leaves<'a, M> {
    from: &'a M,
    chain: Vec<&'a str>,
    /// Derived counters whose leaves were found: each is looked at once, however often it is used.
    done: HashSet<&'a str>,
    found: Vec<Leaf<'a>>,
}

impl<'a, M: Metrics> Leaves<'a, M> {
    fn collect(&mut self, name: &'a str, resolution: Resolution) -> Result<(), EvaluateError> {
        let Some(expression) = self.from.expression(name) else {
            if self.from.shape(name).is_none() {
                return Err(EvaluateError::Unknown(name.to_owned()));
            }
            let leaf = Leaf { name, resolution };
            if !self.found.contains(&leaf) {
                self.found.push(leaf);
            }
            return Ok(());
        };
        enter(&mut self.chain, name, resolution)?;
        if self.done.insert(name) {
            let mut uses = Vec::new();
            expression.root().visit(&mut |name, resolution| {
                if !uses.contains(&(name, resolution)) {
                    uses.push((name, resolution));
                }
            });
            for (name, resolution) in uses {
                self.collect(name, resolution)?;
            }
        }
        self.chain.pop();
        Ok(())
    }
}

/// Adds a derived counter to the chain of those that are being evaluated.
fn enter<'a>(
    chain: &mut Vec<&'a str>,
    name: &'a str,
    resolution: Resolution,
) -> Result<(), EvaluateError> {
    if resolution != Resolution::None {
        return Err(EvaluateError::Accumulated(name.to_owned()));
    }
    if chain.contains(&name) {
        return Err(EvaluateError::Cycle(name.to_owned()));
    }
    if chain.len() == MAX_CHAIN {
        return Err(EvaluateError::Deep(name.to_owned()));
    }
    chain.push(name);
    Ok(())
}

/// The names of two operands in an error.
fn mismatch(left: &Node, right: &Node) -> EvaluateError {
    EvaluateError::Instances {
        left: title(left),
        right: title(right),
    }
}

/// A short name of a node for messages.
fn title(node: &Node) -> String {
    match node {
        Node::Number(n) => n.to_string(),
        Node::Name(name) | Node::Accumulate { name, .. } => name.clone(),
        Node::Binary { left, .. } => title(left),
        Node::Reduce { of, .. } | Node::Select { of, .. } => title(of),
    }
}

struct Walk<'a, V> {
    from: &'a V,
    chain: Vec<&'a str>,
    /// Values of derived counters: each is computed once, however often it is used.
    known: HashMap<&'a str, Vec<Sample>>,
}

impl<'a, V: Values> Walk<'a, V> {
    fn named(
        &mut self,
        name: &'a str,
        resolution: Resolution,
    ) -> Result<Vec<Sample>, EvaluateError> {
        if let Some(expression) = self.from.expression(name) {
            // For a known counter as well: accumulating it, or using it in its own definition, is an error of this use.
            enter(&mut self.chain, name, resolution)?;
            let values = match self.known.get(name) {
                Some(known) => known.clone(),
                None => self.node(expression.root())?,
            };
            self.chain.pop();
            self.known.insert(name, values.clone());
            return Ok(values);
        }
        let leaf = Leaf { name, resolution };
        // A name that does not exist is a mistake in the expression, another only has to be counted as well.
        match self.from.values(leaf) {
            Some(values) if !values.is_empty() => Ok(values),
            None if self.from.shape(name).is_none() => Err(EvaluateError::Unknown(name.to_owned())),
            _ => Err(EvaluateError::NotCounted(name.to_owned())),
        }
    }

    fn node(&mut self, node: &'a Node) -> Result<Vec<Sample>, EvaluateError> {
        match node {
            Node::Number(value) => Ok(vec![Sample::single(*value)]),
            Node::Name(name) => self.named(name, Resolution::None),
            Node::Accumulate { name, resolution } => self.named(name, *resolution),
            Node::Binary {
                operator,
                left,
                right,
            } => {
                let (a, b) = (self.node(left)?, self.node(right)?);
                combine(*operator, a, b).ok_or_else(|| mismatch(left, right))
            }
            Node::Reduce {
                of,
                reduction,
                dimensions,
            } => Ok(reduce(&self.node(of)?, *reduction, dimensions)),
            Node::Select { of, places } => {
                let mut values = self.node(of)?;
                values.retain(|sample| {
                    places.iter().all(|(dimension, ranges)| {
                        let at = sample.position.get(*dimension);
                        ranges.iter().any(|range| range.contains(&at))
                    })
                });
                // A dimension of which a single index was selected is removed from the positions.
                for sample in &mut values {
                    for (dimension, ranges) in places {
                        if single(ranges) {
                            sample.position = sample.position.with(*dimension, 0);
                        }
                    }
                }
                if values.is_empty() {
                    return Err(EvaluateError::Nothing(title(of)));
                }
                Ok(values)
            }
        }
    }
}

/// Whether ranges name one index only.
fn single(ranges: &[std::ops::RangeInclusive<u8>]) -> bool {
    matches!(ranges, [only] if only.start() == only.end())
}

/// Combines two operands instance by instance; a single value is combined with every value of the other operand. `None`
/// when the instances differ.
fn combine(
    operator: Operator,
    mut left: Vec<Sample>,
    mut right: Vec<Sample>,
) -> Option<Vec<Sample>> {
    // Of two single values the left one's position stays, as for lists.
    if let ([one], true) = (&*right, left.len() != right.len() || left.len() == 1) {
        let value = one.value;
        for sample in &mut left {
            sample.value = operator.apply(sample.value, value);
        }
        return Some(left);
    }
    if let [one] = &*left {
        let value = one.value;
        for sample in &mut right {
            sample.value = operator.apply(value, sample.value);
        }
        return Some(right);
    }
    if left.len() != right.len() {
        return None;
    }
    for (n, sample) in left.iter_mut().enumerate() {
        // Both lists nearly always have the same order, so that a search is rarely needed.
        let other = if right[n].position == sample.position {
            &right[n]
        } else {
            right.iter().find(|o| o.position == sample.position)?
        };
        sample.value = operator.apply(sample.value, other.value);
    }
    Some(left)
}

/// Reduces the values along `dimensions`; along all dimensions when the list is empty.
fn reduce(values: &[Sample], reduction: Reduction, dimensions: &[Dimension]) -> Vec<Sample> {
    // Groups keep the order of their first values, which is the order in which instances are shown.
    let mut groups: Vec<(Position, Vec<f64>)> = Vec::new();
    for sample in values {
        let place = if dimensions.is_empty() {
            Position::ORIGIN
        } else {
            dimensions
                .iter()
                .fold(sample.position, |at, dimension| at.with(*dimension, 0))
        };
        match groups.iter_mut().find(|(at, _)| *at == place) {
            Some((_, group)) => group.push(sample.value),
            None => groups.push((place, vec![sample.value])),
        }
    }
    groups
        .into_iter()
        .map(|(position, group)| Sample {
            position,
            value: fold(reduction, &group),
        })
        .collect()
}

fn fold(reduction: Reduction, group: &[f64]) -> f64 {
    let values = group.iter().copied();
    match reduction {
        Reduction::Min => values.fold(f64::INFINITY, f64::min),
        Reduction::Max => values.fold(f64::NEG_INFINITY, f64::max),
        Reduction::Sum => values.sum(),
        Reduction::Average => values.sum::<f64>() / group.len() as f64,
    }
}

struct Shapes<'a, M> {
    from: &'a M,
    chain: Vec<&'a str>,
    /// Shapes of derived counters: each is found once, however often it is used.
    known: HashMap<&'a str, Shape>,
}

impl<'a, M: Metrics> Shapes<'a, M> {
    fn named(&mut self, name: &'a str, resolution: Resolution) -> Result<Shape, EvaluateError> {
        if let Some(expression) = self.from.expression(name) {
            enter(&mut self.chain, name, resolution)?;
            let shape = match self.known.get(name) {
                Some(known) => known.clone(),
                None => self.node(expression.root())?,
            };
            self.chain.pop();
            self.known.insert(name, shape.clone());
            return Ok(shape);
        }
        self.from
            .shape(name)
            .ok_or_else(|| EvaluateError::Unknown(name.to_owned()))
    }

    fn node(&mut self, node: &'a Node) -> Result<Shape, EvaluateError> {
        match node {
            Node::Number(_) => Ok(Shape::single()),
            Node::Name(name) => self.named(name, Resolution::None),
            Node::Accumulate { name, resolution } => self.named(name, *resolution),
            Node::Binary { left, right, .. } => {
                let (a, b) = (self.node(left)?, self.node(right)?);
                // As for the values: a single one goes with any number of others.
                if b.instances() == 1 || a == b {
                    Ok(a)
                } else if a.instances() == 1 {
                    Ok(b)
                } else {
                    Err(mismatch(left, right))
                }
            }
            Node::Reduce { of, dimensions, .. } => {
                let shape = self.node(of)?;
                Ok(shape.without(|d| dimensions.is_empty() || dimensions.contains(&d)))
            }
            Node::Select { of, places } => {
                let shape = self.node(of)?;
                // Ranges leave the dimension with its places: it keeps its extent up to the last one.
                let left = shape.extents().iter().filter_map(|&(dimension, extent)| {
                    match places.iter().find(|(d, _)| *d == dimension) {
                        Some((_, ranges)) if single(ranges) => None,
                        Some((_, ranges)) => {
                            let last = ranges.iter().map(|r| *r.end()).max().unwrap_or(0);
                            Some((dimension, extent.min(last + 1)))
                        }
                        None => Some((dimension, extent)),
                    }
                });
                Ok(Shape::new(left).without(|_| false))
            }
        }
    }
}

#[cfg(test)]
mod tests;
