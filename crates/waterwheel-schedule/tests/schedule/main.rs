//! Tests of the scheduler, in virtual time unless real time matters.

mod support;

#[cfg(feature = "cron")]
mod calendar;
mod cancelling;
mod closing;
mod controls;
mod counts;
mod ends;
mod errors;
mod events;
mod handles;
mod ids;
mod life;
mod limits;
mod missed;
mod mixing;
mod moving;
mod order;
mod racing;
#[cfg(feature = "cron")]
mod rescheduling;
mod retrying;
mod shapes;
mod storm;
mod submitting;
mod together;
mod unruly;
mod values;
mod wall;
