use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::error::ScheduleError;

/// The zone of that name.
pub(super) fn find(zones: &TimeZoneDatabase, name: &str) -> Result<TimeZone, ScheduleError> {
    // Without a database, jiff has none of any name.
    if name.eq_ignore_ascii_case("UTC") {
        return Ok(TimeZone::UTC);
    }
    zones.get(name).map_err(|_| {
        // A name is shorter, and an error's message has an end.
        let name = name.chars().take(64).collect();
        if zones.is_definitively_empty() {
            ScheduleError::NoZoneData { name }
        } else {
            ScheduleError::UnknownZone { name }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_database_the_error_says_so() {
        let found = find(&TimeZoneDatabase::none(), "Europe/Berlin");
        let error = found.unwrap_err();
        assert!(
            matches!(&error, ScheduleError::NoZoneData { name } if &**name == "Europe/Berlin"),
            "{error}"
        );
        assert!(error.to_string().contains("bundled-zones"), "{error}");
    }

    #[test]
    fn utc_needs_no_database() {
        assert_eq!(find(&TimeZoneDatabase::none(), "utc"), Ok(TimeZone::UTC));
    }
}
