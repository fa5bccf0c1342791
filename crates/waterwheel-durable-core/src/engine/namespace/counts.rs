/// What has come of a namespace's timers since the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub inserted: u64,
    /// Inserts with a key that another timer has.
    pub duplicates: u64,
    pub refused_by_quota: u64,
    pub cancelled: u64,
    /// Attempts that have begun.
    pub delivered: u64,
    pub settled: u64,
    pub retried: u64,
    pub dead: u64,
    pub redriven: u64,
    /// Attempts that had to wait for the rate before they began, and those that began together with them.
    pub throttled: u64,
}
