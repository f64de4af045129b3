//! Unleash's engine in Rust. Like the other libraries of the benchmark, it gets features and users, and then requests, one
//! JSON text per line, and measures its own CPU time.

use serde_json::{json, Value};
use std::collections::HashMap;
use std::io::{stdin, stdout, BufRead, Write};
use unleash_types::client_features::ClientFeatures;
use unleash_yggdrasil::{Context, EngineState};

/// Evaluations of all flags between two reads of the clock.
const USERS_AT_ONCE: usize = 200;

/// All flags for one user, or one flag for each user, whose context exists or is created for the evaluation.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    All,
    One,
    OneCreated,
}

struct Library {
    engine: EngineState,
    names: Vec<String>,
    contexts: Vec<Context>,
    next: usize,
    on: usize,
}

impl Library {
    fn load(given: &Value) -> Library {
        let features: ClientFeatures = serde_json::from_value(given["features"].clone()).unwrap();
        let names = features.features.iter().map(|feature| feature.name.clone()).collect();
        let mut engine = EngineState::default();
        engine.apply_client_features(features);
        let contexts = given["users"].as_array().unwrap().iter().map(context_of).collect();
        Library { engine, names, contexts, next: 0, on: 0 }
    }

    fn is_on(&self, user: usize, flag: usize) -> bool {
        self.engine.is_enabled(&self.names[flag], &self.contexts[user], &None)
    }

    /// Returns one row for each user, with one digit for each flag's value.
    fn values(&self) -> Vec<String> {
        (0..self.contexts.len())
            .map(|user| {
                let row = (0..self.names.len()).map(|flag| if self.is_on(user, flag) { '1' } else { '0' });
                row.collect()
            })
            .collect()
    }

    /// Evaluates all flags, for one user or each for another user.
    fn evaluate(&mut self, way: Way) {
        for flag in 0..self.names.len() {
            let is_on = match way {
                Way::OneCreated => {
                    let context = self.contexts[self.next].clone();
                    self.engine.is_enabled(&self.names[flag], &context, &None)
                }
                _ => self.is_on(self.next, flag),
            };
            self.on += usize::from(is_on);
            if way != Way::All {
                self.next = (self.next + 1) % self.contexts.len();
            }
        }
        if way == Way::All {
            self.next = (self.next + 1) % self.contexts.len();
        }
    }

    /// Returns the CPU time of one evaluation in nanoseconds.
    fn speed(&mut self, way: Way, duration_ms: u64) -> f64 {
        let began = cpu_nanoseconds();
        let mut rounds = 0;
        loop {
            for _ in 0..USERS_AT_ONCE {
                self.evaluate(way);
            }
            rounds += USERS_AT_ONCE;
            let used = cpu_nanoseconds() - began;
            if used >= duration_ms * 1_000_000 {
                return used as f64 / (rounds * self.names.len()) as f64;
            }
        }
    }
}

fn context_of(user: &Value) -> Context {
    let fields = user.as_object().unwrap();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_string);
    let properties: HashMap<String, String> = fields
        .iter()
        .filter(|(name, _)| *name != "user_id")
        .map(|(name, value)| (name.clone(), text(value)))
        .collect();
    Context {
        user_id: Some(text(&fields["user_id"])),
        session_id: None,
        environment: None,
        app_name: None,
        current_time: None,
        remote_address: None,
        properties: Some(properties),
    }
}

fn cpu_nanoseconds() -> u64 {
    let time = cpu_time::ProcessTime::now();
    time.as_duration().as_nanos() as u64
}

fn main() {
    let mut library = None;
    for line in stdin().lock().lines() {
        let question: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let answer = match question["kind"].as_str() {
            Some("load") => {
                library = Some(Library::load(&question));
                json!({})
            }
            Some("values") => json!({ "values": library.as_ref().unwrap().values() }),
            _ => {
                let library = library.as_mut().unwrap();
                let way = match question["way"].as_str() {
                    Some("all") => Way::All,
                    Some("one-created") => Way::OneCreated,
                    _ => Way::One,
                };
                let nanoseconds = library.speed(way, question["durationMs"].as_u64().unwrap());
                json!({ "nanoseconds": nanoseconds, "on": library.on })
            }
        };
        println!("{answer}");
        stdout().flush().unwrap();
    }
}
