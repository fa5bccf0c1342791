//! Is the file intact?

use std::collections::HashMap;
use std::path::Path;

use serde::Serialize;
use waterwheel_durable_sqlite::{Finding, check};

use crate::arguments::Json;
use crate::failure::Failure;
use crate::output::Output;
use crate::text;

/// The maximum number of findings shown for each table.
const SHOWN: u64 = 100;

#[derive(Serialize)]
struct Checked {
    file: String,
    is_sound: bool,
    is_beside: bool,
    all_pages: bool,
    rows: u64,
    finding_count: u64,
    findings: Vec<Found>,
}

#[derive(Serialize)]
struct Found {
    table: Option<String>,
    row: Option<String>,
    timer: Option<String>,
    what: String,
    cure: String,
}

pub(crate) fn run(file: &Path, args: &Json, output: &mut Output) -> Result<(), Failure> {
    let mut of_table: HashMap<Option<String>, u64> = HashMap::new();
    let mut findings = Vec::new();
    let mut printed = Ok(());
    let checked = check(file, &mut |finding: Finding| {
        let count = of_table.entry(finding.table.clone()).or_default();
        *count += 1;
        if *count > SHOWN {
            return;
        }
        if args.json {
            findings.push(found(finding));
        } else if printed.is_ok() {
            // Printed as it is found: the rest may take a while.
            let line = text::clean(&finding.to_string());
            printed = output.line(&line).and_then(|()| output.flush());
        }
    })?;
    match printed {
        // Not everything was shown, and the file is not sound.
        Err(Failure::Closed) => return Err(Failure::Said),
        printed => printed?,
    }
    let file = file.display().to_string();
    if args.json {
        output.json(&Checked {
            file,
            is_sound: checked.findings == 0,
            is_beside: checked.is_beside,
            all_pages: checked.all_pages,
            rows: checked.rows,
            finding_count: checked.findings,
            findings,
        })?;
    } else {
        let mut rest: Vec<_> = of_table
            .iter()
            .filter(|(_, count)| **count > SHOWN)
            .collect();
        rest.sort();
        for (table, count) in rest {
            let more = count - SHOWN;
            output.line(&match table {
                Some(table) => format!("{more} more in `{table}`"),
                None => format!("{more} more that are not about one table"),
            })?;
        }
        let pages = match (checked.all_pages, checked.findings) {
            (true, _) => "all pages",
            (false, 0) => {
                "the pages in use (to check the free pages as well, run it on a backup or while no process has the file open)"
            }
            (false, _) => "the pages that could be read",
        };
        let what = match checked.findings {
            0 => "no damage found".to_owned(),
            1 => "1 finding".to_owned(),
            count => format!("{count} findings"),
        };
        let file = text::clean(&file);
        output.line(&format!(
            "{file}: {what} in {pages} and {} rows",
            checked.rows
        ))?;
    }
    match checked.findings {
        0 => Ok(()),
        _ => {
            output.flush()?;
            Err(Failure::Said)
        }
    }
}

fn found(finding: Finding) -> Found {
    Found {
        table: finding.table,
        row: finding.row,
        timer: finding.timer.map(|id| id.to_string()),
        what: finding.what,
        cure: finding.cure.to_owned(),
    }
}
