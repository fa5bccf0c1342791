//! Durable timers as their users see them, on real clocks, a real file and real threads.

mod life;
