/// The two neighbours of an entry, or of a list's end.
#[derive(Clone, Copy)]
pub(super) struct Link {
    pub(super) next: u32,
    pub(super) previous: u32,
}
