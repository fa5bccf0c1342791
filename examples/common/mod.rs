//! Shared by `rpc_timeouts` and `soak`: command line, random numbers (`simulated_time` takes these too), histograms, text.

pub(crate) mod command_line;
pub(crate) mod dice;
pub(crate) mod histogram;
pub(crate) mod text;
