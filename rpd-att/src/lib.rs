//! Decodes the thread traces of AMD GPUs
