//! `rpd guide`: what to run, on one page, for coding agents and newcomers.

use std::ffi::OsString;

use anyhow::Result;
use clap::Parser;

use crate::commands::parse;

/// The page.
pub(crate) const TEXT: &str = include_str!("guide.md");

/// What precedes the page in a file of skills.
const SKILL: &str = "---
name: rpd
description: Profile GPU programs with rpd and say why they are slow. Use it for HIP and ROCm programs, kernels, gaps, copies and counters.
---

";

/// Print what to run to find out why a GPU program is slow, on one page for coding agents and newcomers
#[derive(Debug, Parser)]
struct Arguments {
    /// Print the page as a file of skills, SKILL.md
    #[arg(long)]
    skill: bool,
}

/// Runs `rpd guide`; returns the exit status.
pub(crate) fn run(words: &[OsString]) -> Result<u8> {
    let Some(given) = parse::<Arguments>("guide", words)? else {
        return Ok(0);
    };
    let head = if given.skill { SKILL } else { "" };
    crate::print(&format!("{head}{TEXT}"))
}
