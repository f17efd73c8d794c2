//! Arguments of calls: layouts from the argument table, and the texts that files carry.
