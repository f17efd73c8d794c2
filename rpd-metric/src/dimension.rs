//! Positions of a counter's instances on a device.

use std::fmt;

/// An axis along which a counter has several instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Dimension {
    /// Accelerator complex die.
    Xcc = 1,
    /// Active interposer die.
    Aid = 2,
    /// Shader engine.
    ShaderEngine = 3,
    /// Agent.
    Agent = 4,
    /// Shader array.
    ShaderArray = 5,
    /// Workgroup processor.
    Wgp = 6,
    /// Instance of the block within the other dimensions.
    Instance = 7,
}

impl Dimension {
    /// All dimensions, by id.
    pub const ALL: [Self; 7] = [
        Self::Xcc,
        Self::Aid,
        Self::ShaderEngine,
        Self::Agent,
        Self::ShaderArray,
        Self::Wgp,
        Self::Instance,
    ];

    /// The provider's number of the dimension, from 1.
    pub const fn id(self) -> u8 {
        self as u8
    }

    /// The dimension with that number.
    pub fn from_id(id: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|d| u64::from(d.id()) == id)
    }

    /// Name of the dimension in expressions and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Xcc => "DIMENSION_XCC",
            Self::Aid => "DIMENSION_AID",
            Self::ShaderEngine => "DIMENSION_SHADER_ENGINE",
            Self::Agent => "DIMENSION_AGENT",
            Self::ShaderArray => "DIMENSION_SHADER_ARRAY",
            Self::Wgp => "DIMENSION_WGP",
            Self::Instance => "DIMENSION_INSTANCE",
        }
    }

    /// The dimension of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|d| d.name() == name)
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Largest index along a dimension: ids of values have six bits for it.
pub const MAX_INDEX: u8 = 63;

/// Position of a value: an index along every dimension, 0 where the counter does not have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Position([u8; 7]);

impl Position {
    /// The first instance along every dimension.
    pub const ORIGIN: Self = Self([0; 7]);

    /// The index along a dimension.
    #[inline]
    pub const fn get(self, dimension: Dimension) -> u8 {
        self.0[dimension as usize - 1]
    }

    /// A position with another index along one dimension.
    #[inline]
    #[must_use]
    pub const fn with(mut self, dimension: Dimension, index: u8) -> Self {
        self.0[dimension as usize - 1] = index;
        self
    }
}

/// The dimensions of a counter and their extents, in the order in which they are listed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shape(Vec<(Dimension, u8)>);

impl Shape {
    /// A shape of these extents.
    pub fn new(extents: impl IntoIterator<Item = (Dimension, u8)>) -> Self {
        Self(extents.into_iter().collect())
    }

    /// The shape of a single value.
    pub fn single() -> Self {
        Self(vec![(Dimension::Instance, 1)])
    }

    /// The dimensions, each with its number of positions.
    pub fn extents(&self) -> &[(Dimension, u8)] {
        &self.0
    }

    /// Number of values: the product of the extents.
    pub fn instances(&self) -> usize {
        self.0
            .iter()
            .map(|&(_, extent)| usize::from(extent))
            .product()
    }

    /// The places of all values; the first dimension varies fastest.
    pub fn positions(&self) -> impl Iterator<Item = Position> + use<> {
        let extents = self.0.clone();
        (0..self.instances()).map(move |mut n| {
            let mut position = Position::ORIGIN;
            for &(dimension, extent) in &extents {
                position = position.with(dimension, (n % usize::from(extent)) as u8);
                n /= usize::from(extent);
            }
            position
        })
    }

    /// The shape without some dimensions; with none left it has one value.
    #[must_use]
    pub(crate) fn without(&self, gone: impl Fn(Dimension) -> bool) -> Self {
        let left: Vec<_> = self.0.iter().copied().filter(|&(d, _)| !gone(d)).collect();
        if left.is_empty() {
            Self::single()
        } else {
            Self(left)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_are_found_by_name_and_id() {
        for dimension in Dimension::ALL {
            assert_eq!(Dimension::from_name(dimension.name()), Some(dimension));
            assert_eq!(Dimension::from_id(dimension.id().into()), Some(dimension));
        }
        assert_eq!(Dimension::from_id(0), None);
        assert_eq!(Dimension::from_name("DIMENSION_NONE"), None);
    }

    #[test]
    fn positions_vary_the_first_dimension_fastest() {
        let shape = Shape::new([(Dimension::Instance, 2), (Dimension::ShaderEngine, 3)]);
        let places: Vec<_> = shape
            .positions()
            .map(|p| (p.get(Dimension::Instance), p.get(Dimension::ShaderEngine)))
            .collect();
        assert_eq!(places, [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]);
        assert_eq!(Shape::single().positions().count(), 1);
    }
}
