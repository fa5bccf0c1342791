//! Who turns a shard, how much at a time, and who wakes what comes up.
//!
//! | file | concept |
//! |---|---|
//! | `task` | the first turner: the driver, a task that turns all shards |
//! | `first_turn` | the second: the waker that tokio's clock wakes. It takes the first turn after the driver's sleep |
//! | `catch_up` | the third: a task that turns one shard, for a driver that is late, or that has given away a backlog |
//! | `by_hand` | the fourth: who advances a manual clock. No other turns the shards of a timer that has one |
//! | `all_shards` | a turn of every shard that is due, and the driver's next target |
//! | `one_shard` | a turn of one shard: batches with the lock held, and the wakes in between |
//! | `allowance` | how many timers a turn serves, by how long it had to wait |
//! | `wakers` | the wakers that a batch has collected, in order |
//!
//! The turners know the rest, and not each other, but for the task, which makes the second, and `all_shards`, which makes the third. A shard is turned by one thread at a time (`shard/turning`).

mod all_shards;
mod by_hand;
mod catch_up;
mod first_turn;
mod one_shard;
mod task;

pub(super) use by_hand::turn_by_hand;
pub(crate) use catch_up::spawn_catch_up;
pub(super) use task::DriverTask;
