//! Reads segments, whole or cut short, from living or dead processes.
