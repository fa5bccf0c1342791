//! What the examples that are programs share: the command line, chance, and what is shown.

pub(crate) mod command_line;
pub(crate) mod dice;
pub(crate) mod histogram;
pub(crate) mod text;
