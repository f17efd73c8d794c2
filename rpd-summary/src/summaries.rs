//! The summary tables that the options select.

use regex::Regex;
use rpd_core::domain::Domain;
use rpd_core::options::SummaryOptions;
use rpd_core::stats::StatTable;

use crate::{Statistics, SummaryError};

/// An expression that chooses domains by their labels.
#[derive(Debug, Clone)]
pub struct Group(Regex);

impl Group {
    /// Reads an expression. It has to match whole labels.
    ///
    /// # Errors
    /// When it is not a regular expression.
    pub fn parse(expression: &str) -> Result<Group, SummaryError> {
        let wrong = |error: regex::Error| {
            let text = error.to_string();
            // The last line names the mistake, those before draw where it is.
            let reason = text.lines().last().unwrap_or_default();
            SummaryError::Expression {
                expression: expression.to_owned(),
                reason: reason.trim_start_matches("error: ").to_owned(),
            }
        };
        // Compiled alone first: inside the parentheses added below, `a)(b` would be valid.
        Regex::new(expression).map_err(wrong)?;
        Regex::new(&format!("\\A(?:{expression})\\z"))
            .map(Group)
            .map_err(wrong)
    }

    /// Whether the expression matches the label of the domain.
    pub fn has(&self, domain: Domain) -> bool {
        self.0.is_match(domain.label())
    }
}

impl Statistics<'_> {
    /// The tables of `request`: those per domain, those of groups, the one over all domains. There are
    /// none without rows.
    ///
    /// # Errors
    /// When temporary files cannot be written, or an expression is wrong.
    pub fn summaries(&self, request: &SummaryOptions) -> Result<Vec<StatTable>, SummaryError> {
        let mut tables = Vec::new();
        if request.per_domain {
            for domain in self.domains() {
                tables.push(self.table(domain.label(), &[domain])?);
            }
        }
        for expression in &request.groups {
            let group = Group::parse(expression)?;
            let chosen: Vec<Domain> = self.domains().filter(|domain| group.has(*domain)).collect();
            let labels: Vec<&str> = chosen.iter().map(|domain| domain.label()).collect();
            tables.push(self.table(&labels.join(" + "), &chosen)?);
        }
        if request.overall {
            let all: Vec<Domain> = self.domains().collect();
            tables.push(self.table("", &all)?);
        }
        tables.retain(|table| !table.rows.is_empty());
        Ok(tables)
    }
}
