//! What follows from a request for another policy, or a pause? It is written as a setting, and holds once that is durable.

use std::sync::Arc;

use crate::store::{Op, Setting};

use super::super::planted::{self, Planted};
use super::super::{Answer, Engine, Output, Token};
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
            let at = self.namespace_index(&at);
            self.namespaces[at].is_drained = is_drained;
            self.closed(at);
            self.go_on();
        }
    }

    /// A setting has this value.
    pub(in super::super) fn was_set(&mut self, name: &str, value: Option<&[u8]>) {
        if let Some(name) = name.strip_prefix(PAUSED) {
            let at = self.namespace_index(name);
            self.namespaces[at].is_paused =
                value.is_some() && !planted::is(Planted::PauseForgotten);
            // A resume lifts a drain, once it is durable.
            self.namespaces[at].is_drained &= value.is_some();
            self.closed(at);
        } else if let Some(name) = name.strip_prefix(POLICY) {
            let policy = value.map(Policy::from_stored);
            let (at, boot) = (self.namespace_index(name), self.now.boot_micros);
            let namespace = &mut self.namespaces[at];
            namespace.is_created |= value.is_some();
            namespace.is_known |= value.is_some();
            namespace.is_unreadable = matches!(policy, Some(None));
            if namespace.is_unreadable {
                let name = Arc::clone(&namespace.name);
                self.output.push_back(Output::UnreadablePolicy(name));
            }
            let policy = policy.flatten().unwrap_or_default();
            self.namespaces[at].set_policy(policy, boot);
        }
    }

    /// A namespace was paused, drained or resumed.
    fn closed(&mut self, at: usize) {
        if self.namespaces[at].is_closed() {
            self.evict_closed(at);
        }
    }

    /// Takes over what the store has kept.
    pub fn restore_settings(&mut self, settings: &[Setting]) {
        for Setting { name, value } in settings {
            self.was_set(name, Some(value));
            self.note_clean_end(name, value);
        }
        self.look_for_suspects();
    }
}
