//! What follows from a request for another policy, or a pause? It is written as a setting, and holds once that is durable.

use std::sync::Arc;

use waterwheel_store::{Op, Setting};

use super::super::planted::{self, Planted};
use super::super::{Answer, Engine, Token};
use crate::policy::Policy;

/// Before the name of a namespace, in the name of the setting that has its policy.
const POLICY: &str = "namespace/";

/// The same of the setting that is there while it is paused.
const PAUSED: &str = "paused/";

impl Engine {
    /// Gives a namespace a policy, and creates it if it is not there: [`Done`](Answer::Done). If `is_new` is asked for, one that is there stays as it is.
    pub fn set_policy(&mut self, token: Token, name: &Arc<str>, policy: &Policy, is_new: bool) {
        if self.refuses(token) {
            return;
        }
        if is_new && self.namespace(name).is_some_and(|it| it.is_created) {
            return self.answer(token, Answer::Done);
        }
        let setting = format!("{POLICY}{name}").into();
        self.request(Op::Set(setting, Some(policy.to_stored().into())), token);
    }

    /// Delivers nothing of a namespace from then on, or delivers again: [`Done`](Answer::Done) or [`UnknownNamespace`](Answer::UnknownNamespace).
    pub fn pause(&mut self, token: Token, name: &Arc<str>, is_paused: bool) {
        if self.refuses(token) {
            return;
        }
        if self.namespace(name).is_none_or(|it| !it.is_known) {
            return self.answer(token, Answer::UnknownNamespace(Arc::clone(name)));
        }
        let value = is_paused.then(|| Arc::from([]));
        self.request(Op::Set(format!("{PAUSED}{name}").into(), value), token);
    }

    /// Begins no delivery of a namespace in this run, or does again.
    pub fn drain(&mut self, name: &str, is_drained: bool) {
        if let Some(at) = self.namespace(name).map(|it| Arc::clone(&it.name)) {
            let at = self.seen(&at);
            self.namespaces[at].is_drained = is_drained;
            self.closed(at);
            self.go_on();
        }
    }

    /// A setting has this value.
    pub(in super::super) fn was_set(&mut self, name: &str, value: Option<&[u8]>) {
        if let Some(name) = name.strip_prefix(PAUSED) {
            let at = self.seen(name);
            self.namespaces[at].is_paused =
                value.is_some() && !planted::is(Planted::PauseForgotten);
            // A resume lifts a drain, once it is durable.
            self.namespaces[at].is_drained &= value.is_some();
            self.closed(at);
        } else if let Some(name) = name.strip_prefix(POLICY) {
            let policy = value.and_then(Policy::from_stored).unwrap_or_default();
            let (at, boot) = (self.seen(name), self.now.boot_micros);
            self.namespaces[at].is_created |= value.is_some();
            self.namespaces[at].is_known |= value.is_some();
            self.namespaces[at].set_policy(policy, boot);
        }
    }

    /// A namespace was paused, drained or resumed.
    fn closed(&mut self, at: usize) {
        if self.namespaces[at].is_closed() {
            self.let_go_of_closed(at);
        }
    }

    /// Takes over what the store has kept.
    ///
    /// # Errors
    ///
    /// The name of a setting that makes no sense.
    pub fn restore_settings(&mut self, settings: &[Setting]) -> Result<(), Arc<str>> {
        for Setting { name, value } in settings {
            if name.starts_with(POLICY) && Policy::from_stored(value).is_none() {
                return Err(Arc::clone(name));
            }
            self.was_set(name, Some(value));
            self.note_clean_end(name, value);
        }
        self.look_for_suspects();
        Ok(())
    }
}
