//! Vocabulary of rpd: options, records, the spool and the session.
