//! Tests of the API as programs call it.
