//! Charts as SVG: bars and curves on a card, in the colours of the reader's theme.
//!
//! | file | question |
//! |---|---|
//! | `card` | what surrounds every chart? |
//! | `bars`, `curves`, `percentiles` | what is drawn of the figures? |
//! | `look`, `theme` | how are contestants told apart? |
//! | `scale`, `figures` | where does a value stand, and how is it written? |
//! | `draw` | which shapes is it made of? |

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
