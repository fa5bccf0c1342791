//! Charts as SVG: bars and curves on a card, in the colours of the reader's theme.
//!
//! | file | question |
//! |---|---|
//! | `card` | what surrounds every chart? |
//! | `bars`, `curves`, `percentiles` | how are the figures drawn? |
//! | `look`, `theme` | how are contestants told apart? |
//! | `scale`, `figures` | where is a value placed, and how is it written? |
//! | `draw` | which shapes are there? |

pub mod bars;
mod card;
pub mod curves;
mod draw;
mod figures;
mod look;
pub mod percentiles;
mod scale;
mod theme;

pub use card::{Chart, frame};
pub use figures::{count, short_count};
pub use look::{Look, Mark};
pub use scale::Kind;
