//! Decodes streams that are known from hardware's decoder, and streams that an encoder of our own made.

mod collect;
mod damaged;
mod directory;
mod encoder;
mod gfx9;
mod golden;
mod library;
mod rdna;
mod rdna_code;
mod rules;
mod stitching;
